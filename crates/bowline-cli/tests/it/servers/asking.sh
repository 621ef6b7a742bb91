# A server that asks before it greets.
while IFS= read -r line; do
  id=${line#*\"id\":}
  id=${id%%[,\}]*}
  case $line in
    *'"method":"initialize"'*)
      printf '%s\n' '{"jsonrpc":"2.0","id":'"$id"',"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"asking","version":"1"}}}' ;;
    *'"method":"tools/call"'*)
      call=$id
      printf '%s\n' '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"asking"}}'
      printf '%s\n' '{"jsonrpc":"2.0","id":"q-'"${QUESTION:-1}"'","method":"elicitation/create","params":{"message":"Your name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}' ;;
    *'"action":"accept"'*)
      printf '%s\n' '{"jsonrpc":"2.0","id":'"$call"',"result":{"content":[{"type":"text","text":"'"${GREETING:-hello}"'"}]}}' ;;
    *'"action":'*)
      printf '%s\n' '{"jsonrpc":"2.0","id":'"$call"',"result":{"content":[],"isError":true}}' ;;
    *'"id":'*)
      printf '%s\n' '{"jsonrpc":"2.0","id":'"$id"',"error":{"code":-32601,"message":"no such method"}}' ;;
  esac
done
