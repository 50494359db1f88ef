# A server that starts other processes, which its first argument selects, and then serves two tools: one that answers,
# and one that never does.

case $1 in
direct | serve) ;;
npx-tree) sh -c 'sh "$0" serve; exit $?' "$0"; exit $? ;;
setsid) setsid sleep 985 </dev/null >/dev/null 2>&1 & ;;
double-fork) (sleep 985 </dev/null >/dev/null 2>&1 &) ;;
ignores-term) trap '' TERM; sleep 985 >/dev/null 2>&1 & ;;
setsid-ignores-term) (trap '' TERM; exec setsid sleep 985 </dev/null >/dev/null 2>&1) & ;;
holds-stdout) sleep 985 & ;;
64-forks)
    n=0
    while [ $n -lt 64 ]; do
        sleep 985 >/dev/null 2>&1 &
        n=$((n + 1))
    done
    ;;
exits-3) echo 'no more' >&2; exit 3 ;;
dies-of-9) kill -9 $$ ;;
dumps)
    {
        tr '\0' '\n' </proc/$$/environ
        echo "cwd $(pwd -P) $(stat -c %a .) [$(ls -A)]"
        ls -l /proc/self/fd | sed -n 's/.* \([0-9]*\) -> /fd \1 /p'
    } >"$HOME/dump"
    ;;
esac

while read -r line; do
    id=${line#*\"id\":}
    id=${id%%[,\}]*}
    case $line in
    *server/discover*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{\"code\":-32601,\"message\":\"no\"}}" ;;
    *\"initialize\"*)
        echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}}}"
        ;;
    *tools/list*)
        echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"tools\":[{\"name\":\"answer\",\"inputSchema\":{\"type\":\"object\"}},{\"name\":\"silence\",\"inputSchema\":{\"type\":\"object\"}}]}}"
        ;;
    *\"silence\"*) : >asked ;;
    *tools/call*)
        echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"ahoy\"}]}}"
        ;;
    esac
done

# This one keeps running after the end of its input.
[ "$1" != ignores-term ] || exec sleep 985
