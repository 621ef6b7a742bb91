#compdef bowline
# Completion of bowline for zsh: `source <(bowline completions zsh)` in ~/.zshrc, after compinit.
_bowline() {
    local -a offers plain open
    offers=("${(@f)$(bowline __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    offers=(${offers:#})
    if (( ! $#offers )); then
        _files
        return
    fi
    open=(${(M)offers:#*=})
    plain=(${offers:#*=})
    (( $#open )) && compadd -Q -S '' -- $open
    (( $#plain )) && compadd -Q -- $plain
}
compdef _bowline bowline
