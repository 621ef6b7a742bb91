# Completion of bowline for bash: `eval "$(bowline completions bash)"` in ~/.bashrc.
_bowline() {
    local IFS=$'\n'
    COMPREPLY=($(bowline __complete --line "${COMP_LINE:0:COMP_POINT}" 2>/dev/null))
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]]; then
        compopt -o nospace
    fi
}
complete -o default -F _bowline bowline
