# Completion of bowline for bash: `eval "$(bowline completions bash)"` in ~/.bashrc.
_bowline() {
    local offer
    COMPREPLY=()
    # bash inserts what is offered as it is; the program has quoted it.
    while IFS= read -r offer; do
        COMPREPLY+=("$offer")
    done < <(bowline __complete --shell bash --breaks "$COMP_WORDBREAKS" --line "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
complete -o default -F _bowline bowline
