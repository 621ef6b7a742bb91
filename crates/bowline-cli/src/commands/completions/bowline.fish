# Completion of bowline for fish: `bowline completions fish > ~/.config/fish/completions/bowline.fish`.
# fish quotes a candidate when it inserts it.
function __bowline_offers
    set -l words (commandline -opc)
    bowline __complete --shell fish -- $words[2..-1] (commandline -ct) 2>/dev/null
end
complete -c bowline -a '(__bowline_offers)'
