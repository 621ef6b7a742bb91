# A server in shell, of either era. It works in a folder of its own, where it keeps its process id for every start (`starts`),
# its environment (`env`) and every frame it reads (`frames`). LABEL tells it from others.
echo "$$" >> starts
COMPLETE=
[ "$ERA" = modern ] && COMPLETE='"resultType":"complete",'
env > env
if [ -e broken ]; then
    echo "the first word" >&2
    echo "no key for $LABEL" >&2
    exit 7
fi
# One that is held up starts when it is let go.
while [ -e held ]; do sleep 0.02; done
# One that hangs takes what it is told and says nothing.
while [ -e hung ]; do read -r line || exit 0; done
while read -r line; do
    printf '%s\n' "$line" >> frames
    id=${line##*\"id\":}
    id=${id%%[!0-9]*}
    reply() { printf '{"jsonrpc":"2.0","id":%s,"result":{%s%s}}\n' "$id" "$COMPLETE" "$1"; }
    capabilities='"capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"prompts":{"listChanged":true}}'
    case $line in
    *'"server/discover"'*)
        if [ "$ERA" = modern ]; then
            reply "\"supportedVersions\":[\"2026-07-28\"],\"instructions\":\"use $LABEL\",$capabilities"
        else
            printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id"
        fi ;;
    *'"initialize"'*)
        reply "\"protocolVersion\":\"2025-06-18\",\"serverInfo\":{\"name\":\"$LABEL\",\"version\":\"1\"},\"instructions\":\"use $LABEL\",$capabilities" ;;
    *'"subscriptions/listen"'*)
        printf '{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s},"notifications":{}}}\n' "$id" ;;
    *'"tools/list"'*)
        tool() { printf '{"name":"%s","description":"%s of %s","inputSchema":{"type":"object"}}' "$1" "$1" "$LABEL"; }
        reply "\"tools\":[$(tool id),$(tool wait),$(tool die),$(tool "of_$LABEL")]" ;;
    *'"resources/list"'*) reply "\"resources\":[{\"uri\":\"note:///$LABEL\",\"name\":\"note\"},{\"uri\":\"note:///shared\",\"name\":\"shared\"}]" ;;
    *'"resources/templates/list"'*) reply '"resourceTemplates":[]' ;;
    *'"resources/read"'*) reply "\"contents\":[{\"uri\":\"note:///$LABEL\",\"text\":\"secret of $LABEL\"}]" ;;
    *'"prompts/list"'*) reply "\"prompts\":[{\"name\":\"greet_$LABEL\"}]" ;;
    *'"prompts/get"'*) reply "\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"hello from $LABEL\"}}]" ;;
    *'"die"'*)
        echo "dying of it" >&2
        exit 3 ;;
    *'"wait"'*)
        : > waiting
        while [ ! -e go ]; do sleep 0.02; done
        reply '"content":[{"type":"text","text":"waited"}]' ;;
    *'"tools/call"'*) reply "\"content\":[{\"type\":\"text\",\"text\":\"$$\"}]" ;;
    *'"id":'*) reply '' | sed 's/,}/}/' ;;
    esac
done
