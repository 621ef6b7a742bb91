//! Reads files of environment variables, as named by `envFile`.

use std::io;
use std::path::Path;

use super::node::at;
use super::open::read_regular;
use super::report::ConfigError;
use super::text::Text;

/// The maximum size of an environment file.
const LONGEST: usize = 1 << 20;

/// Reads the text of an environment file. Fails for devices and pipes, which may never end.
pub fn read_env_file(path: &Path) -> io::Result<String> {
    let bytes = read_regular(path, LONGEST)?;
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "expected UTF-8"))
}

/// Parses `NAME=value` lines. `export` and comments are allowed. Single-quoted values are literal; double-quoted values
/// may contain `\n`, `\t`, `\"` and `\\`. Variables are not expanded. Values are secrets.
///
/// The second list reports invalid lines; the other lines are still used.
pub fn parse_env_file(path: &Path, text: &str) -> (Vec<(String, Text)>, Vec<ConfigError>) {
    let file = std::sync::Arc::from(path);
    let (mut variables, mut errors) = (Vec::new(), Vec::new());
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let origin = at(&file, index + 1, 1);
        let line = line.strip_prefix("export ").unwrap_or(line);
        let pair = line.split_once('=').map(|(name, value)| (name.trim(), value.trim()));
        let is_name = |name: &str| {
            !name.is_empty()
                && !name.starts_with(|c: char| c.is_ascii_digit())
                && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'))
        };
        let read =
            pair.filter(|(name, _)| is_name(name)).and_then(|(name, value)| Some((name, unquote(value)?)));
        match read {
            Some((name, value)) => variables.push((name.to_owned(), Text::secret(value, "***", origin))),
            None => errors.push(ConfigError {
                origin,
                // The line may be a secret, so the error does not repeat it.
                field: String::new(),
                message: "expected a line such as `NAME=value`".to_owned(),
                help: Some(
                    "put a value with spaces or `#` in quotes, and close them on the same line".to_owned(),
                ),
            }),
        }
    }
    (variables, errors)
}

fn unquote(value: &str) -> Option<String> {
    if value.contains('\0') {
        return None;
    }
    let Some(quote) = value.chars().next().filter(|c| matches!(c, '\'' | '"')) else {
        // A comment needs a space before it, so that colors and URL fragments are kept.
        return Some(value.split(" #").next().unwrap_or_default().trim_end().to_owned());
    };
    let mut result = String::new();
    let mut characters = value.chars().skip(1);
    while let Some(c) = characters.next() {
        match c {
            _ if c == quote => {
                let rest: String = characters.collect();
                let rest = rest.trim_start();
                return (rest.is_empty() || rest.starts_with('#')).then_some(result);
            }
            '\\' if quote == '"' => match characters.next()? {
                'n' => result.push('\n'),
                't' => result.push('\t'),
                'r' => result.push('\r'),
                other @ ('"' | '\\' | '$') => result.push(other),
                other => result.extend(['\\', other]),
            },
            _ => result.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::parse_env_file;

    #[test]
    fn lines_quotes_and_comments() {
        let text = "\u{feff}# comment\nA=1\nexport B = two words # comment\nC='a $B \\n'\nD=\"x\\ny \\\"z\\\"\" # c\nE=\nF=a#b\n";
        let (variables, errors) = parse_env_file(Path::new(".env"), text);
        let plain: Vec<(&str, &str)> =
            variables.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
        assert_eq!(
            plain,
            [("A", "1"), ("B", "two words"), ("C", "a $B \\n"), ("D", "x\ny \"z\""), ("E", ""), ("F", "a#b")]
        );
        assert_eq!(errors, []);
    }

    #[test]
    fn unreadable_files_are_reported_without_their_text() {
        // V-57
        let (variables, errors) = parse_env_file(Path::new(".env"), "A=1\nhunter2\nB=\"open\n1X=2\n");
        assert_eq!(variables.len(), 1);
        let reported: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(reported.len(), 3);
        assert!(reported.iter().all(|text| !text.contains("hunter2")), "{reported:?}");
        assert!(
            reported.iter().any(|text| text.starts_with(".env:2:1: expected a line such as `NAME=value`"))
        );
    }
}
