# A server whose tool runs as a task. The id of a task says what state it is in.
times='"createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:01Z"'
send() {
  printf '%s\n' '{"jsonrpc":"2.0","id":'"$id"',"result":{'"$1"'}}'
}
state() {
  send '"resultType":"complete","taskId":"'"$task"'",'"$times"',"ttlMs":60000,"pollIntervalMs":50,'"$1"
}
refuse() {
  printf '%s\n' '{"jsonrpc":"2.0","id":'"$id"',"error":{"code":'"$1"',"message":"'"$2"'"}}'
}
question='"q1":{"method":"elicitation/create","params":{"message":"Your name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}}'
while IFS= read -r line; do
  id=${line#*\"id\":}
  id=${id%%[,\}]*}
  task=${line#*\"taskId\":\"}
  task=${task%%\"*}
  case $line in
    *'"method":"server/discover"'*)
      send '"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}},"ttlMs":0,"cacheScope":"private"' ;;
    *'"method":"initialize"'*)
      send '"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}},"serverInfo":{"name":"tasks","version":"1"}' ;;
    *'"method":"tools/list"'*)
      send '"resultType":"complete","tools":[{"name":"build","inputSchema":{"type":"object"}}],"ttlMs":0,"cacheScope":"private"' ;;
    *'"method":"tools/call"'*)
      task=t-done
      send '"resultType":"task","taskId":"t-done","status":"working",'"$times"',"ttlMs":60000,"pollIntervalMs":50' ;;
    *'"method":"tasks/list"'*)
      send '"tasks":[{"taskId":"t-1","status":"working","statusMessage":"half way",'"$times"',"ttl":60000},{"taskId":"t-2","status":"completed",'"$times"',"ttl":null}]' ;;
    *'"method":"tasks/update"'*)
      case $line in
        *'"inputResponses":{"q1":{"action":"accept","content":{"name":"Ann"}}}'*) send '"resultType":"complete"' ;;
        *) refuse -32602 'not the expected answer' ;;
      esac ;;
    *'"method":"tasks/cancel"'*) send '"resultType":"complete"' ;;
    *'"method":"tasks/get"'*)
      case $task in
        t-done) state '"status":"completed","result":{"content":[{"type":"text","text":"built"}]}' ;;
        t-bad) state '"status":"completed","result":{"content":[{"type":"text","text":"no disk"}],"isError":true}' ;;
        t-failed) state '"status":"failed","error":{"code":-32050,"message":"crashed"}' ;;
        t-cancelled) state '"status":"cancelled"' ;;
        t-work) state '"status":"working","statusMessage":"half way"' ;;
        t-ask) state '"status":"input_required","inputRequests":{'"$question"'}' ;;
        *) refuse -32602 'no such task' ;;
      esac ;;
    *'"id":'*) refuse -32601 'no such method' ;;
  esac
done
