use str
# Completion of bowline for elvish: `eval (bowline completions elvish | slurp)` in rc.elv.
set edit:completion:arg-completer[bowline] = {|@words|
    for offer [(bowline __complete -- (all $words[1..]) 2>/dev/null | from-lines)] {
        if (str:has-suffix $offer '=') {
            edit:complex-candidate $offer &code-suffix=''
        } else {
            edit:complex-candidate $offer &code-suffix=' '
        }
    }
}
