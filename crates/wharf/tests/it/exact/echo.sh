# A server that returns the arguments of a call unchanged, and one string that is not valid Unicode.

answer() {
    printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"
}

tool() {
    printf '{"name":"%s","inputSchema":{"type":"object"}}' "$1"
}

while read -r line; do
    id=${line#*\"id\":}
    id=${id%%[,\}]*}
    arguments="{${line#*\"arguments\":\{}"
    arguments="${arguments%%\}*}}"
    case $line in
    *server/discover*) answer '"error":{"code":-32601,"message":"no"}' ;;
    *\"initialize\"*)
        answer '"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1"}}'
        ;;
    *tools/list*) answer "\"result\":{\"tools\":[$(tool echo),$(tool half),$(tool numbers)]}" ;;
    *\"numbers\"*) answer '"result":{"content":[],"structuredContent":{"n":12345678901234567890123,"f":1e99999,"z":0.10}}' ;;
    *\"half\"*) answer '"result":{"content":[{"type":"text","text":"half:\ud800."}]}' ;;
    *\"echo\"*) answer "\"result\":{\"content\":[],\"structuredContent\":$arguments}" ;;
    esac
done
