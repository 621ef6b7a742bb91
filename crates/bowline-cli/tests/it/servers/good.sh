# A server about which there is little to say.
say() { printf '%s\n' '{"jsonrpc":"2.0","id":'"$id"',"'"$1"'":'"$2"'}'; }
while IFS= read -r line; do
  id=${line#*\"id\":}
  id=${id%%[,\}]*}
  case $line in
    *'"method":"notifications/'*) ;;
    *'"method":"initialize"'*)
      version=${line#*\"protocolVersion\":\"}
      version=${version%%\"*}
      say result '{"protocolVersion":"'"$version"'","capabilities":{"tools":{}},"serverInfo":{"name":"good","version":"1.0"}}' ;;
    *'"method":"ping"'*) say result '{}' ;;
    *'"method":"tools/list"'*cursor*) say error '{"code":-32602,"message":"no such page"}' ;;
    *'"method":"tools/list"'*)
      say result '{"tools":[{"name":"now","description":"Tells the time of this computer.","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"hour":{"type":"integer"}},"required":["hour"]}}]}' ;;
    *'"name":"now"'*) say result '{"content":[],"structuredContent":'"${STRUCTURED:-{\"hour\":12\}}"'}' ;;
    *'"method":"tools/call"'*) say error '{"code":-32602,"message":"no such tool"}' ;;
    *) say error '{"code":-32601,"message":"no such method"}' ;;
  esac
done
