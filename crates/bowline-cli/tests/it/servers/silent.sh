# A server that opens in every legacy revision and answers nothing else.
while IFS= read -r line; do
  id=${line#*\"id\":}
  id=${id%%[,\}]*}
  case $line in
    *'"method":"initialize"'*)
      version=${line#*\"protocolVersion\":\"}
      version=${version%%\"*}
      printf '%s\n' '{"jsonrpc":"2.0","id":'"$id"',"result":{"protocolVersion":"'"$version"'","capabilities":{"tools":{},"resources":{},"prompts":{},"completions":{}},"serverInfo":{"name":"silent","version":"1.0"}}}' ;;
    *'"method":"server/discover"'*)
      printf '%s\n' '{"jsonrpc":"2.0","id":'"$id"',"error":{"code":-32601,"message":"no such method"}}' ;;
  esac
done
