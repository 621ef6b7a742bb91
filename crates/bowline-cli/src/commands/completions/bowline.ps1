# Completion of bowline for PowerShell: `bowline completions powershell | Out-String | Invoke-Expression` in $PROFILE.
Register-ArgumentCompleter -Native -CommandName bowline -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $words = @($commandAst.CommandElements | Select-Object -Skip 1 |
        Where-Object { $_.Extent.EndOffset -lt $cursorPosition } | ForEach-Object { $_.ToString() })
    bowline __complete '--' @words $wordToComplete 2>$null | ForEach-Object {
        [System.Management.Automation.CompletionResult]::new($_, $_, 'ParameterValue', $_)
    }
}
