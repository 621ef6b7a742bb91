use str
# Completion of bowline for elvish: `eval (bowline completions elvish | slurp)` in rc.elv.
# elvish quotes a candidate when it inserts it.
set edit:completion:arg-completer[bowline] = {|@words|
    for offer [(bowline __complete --shell elvish -- (all $words[1..]) 2>/dev/null | from-lines)] {
        if (str:has-suffix $offer '=') {
            edit:complex-candidate $offer &code-suffix=''
        } else {
            edit:complex-candidate $offer &code-suffix=' '
        }
    }
}
