# Completion of bowline for PowerShell: `bowline completions powershell | Out-String | Invoke-Expression` in $PROFILE.
Register-ArgumentCompleter -Native -CommandName bowline -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $words = @($commandAst.CommandElements | Select-Object -Skip 1 |
        Where-Object { $_.Extent.EndOffset -lt $cursorPosition } | ForEach-Object {
            if ($_ -is [System.Management.Automation.Language.StringConstantExpressionAst]) { $_.Value } else { $_.ToString() }
        })
    # PowerShell inserts what is offered as it is; the program has quoted it.
    bowline __complete --shell powershell '--' @words $wordToComplete 2>$null | ForEach-Object {
        [System.Management.Automation.CompletionResult]::new($_, $_, 'ParameterValue', $_)
    }
}
