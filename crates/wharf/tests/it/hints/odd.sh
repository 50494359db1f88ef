# A server that misbehaves in one way, which its first argument selects.

version=2025-11-25
[ "$1" != old ] || version=1999-01-01

answer() {
    echo "{\"jsonrpc\":\"2.0\",\"id\":$id,$1}"
}

tool() {
    echo "{\"name\":\"$1\",\"inputSchema\":{\"type\":\"object\"}}"
}

while read -r line; do
    id=${line#*\"id\":}
    id=${id%%[,\}]*}
    case $line in
    *server/discover*) answer '"error":{"code":-32601,"message":"no"}' ;;
    *\"initialize\"*)
        answer "\"result\":{\"protocolVersion\":\"$version\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"odd\",\"version\":\"1\"}}"
        ;;
    *tools/list*) answer "\"result\":{\"tools\":[$(tool silence),$(tool death),$(tool flood),$(tool nothing),$(tool refusal)]}" ;;
    *\"silence\"*) ;;
    *\"nothing\"*) answer '"outcome":{}' ;;
    *\"refusal\"*) answer '"error":{"code":-32000,"message":"not on a Sunday"}' ;;
    *\"death\"*)
        printf '\033[31mthe token is %s\033[0m\n' "$TOKEN" >&2
        exit 3
        ;;
    *\"flood\"*)
        printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"' "$id"
        head -c 18000000 /dev/zero | tr '\0' x
        echo '"}]}}'
        ;;
    esac
done
