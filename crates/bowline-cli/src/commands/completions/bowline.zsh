#compdef bowline
# Completion of bowline for zsh: `source <(bowline completions zsh)` in ~/.zshrc, after compinit.
_bowline() {
    local -a offers
    offers=("${(@f)$(bowline __complete --shell zsh -- "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
    offers=("${(@)offers:#}")
    if (( ! $#offers )); then
        _files
        return
    fi
    # compadd quotes what it inserts, unless it is called with -Q.
    compadd -S '' -- "${(@M)offers:#*=}"
    compadd -- "${(@)offers:#*=}"
}
compdef _bowline bowline
