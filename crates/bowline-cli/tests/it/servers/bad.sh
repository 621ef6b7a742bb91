# A server that does most things wrong.
say() { printf '%s\n' '{"jsonrpc":"2.0","id":'"$id"',"'"$1"'":'"$2"'}'; }
echo "Listening..."
echo "log line" >&2
while IFS= read -r line; do
  id=${line#*\"id\":}
  id=${id%%[,\}]*}
  case $line in
    *'"method":"notifications/'*) ;;
    *'"method":"initialize"'*)
      printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"roots/list"}'
      say result '{"protocolVersion":"2024-11-05","capabilities":{"tools":{},"prompts":{}},"serverInfo":{"name":"bad","version":""}}' ;;
    *'"method":"tools/list"'*)
      say result '{"tools":[{"name":"files.read","inputSchema":{"type":"object","properties":{"path":{"oneOf":[{"type":"string"}]}}}},{"name":"twice","description":"Hidden\u200b text.","inputSchema":{}},{"name":"twice"}]}' ;;
    *) say error '{"code":-32000,"message":"what?"}' ;;
  esac
done
exit 3
