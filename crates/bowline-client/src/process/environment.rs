//! Selects the variables of this process that a child process receives by default.
//!
//! The list contains what programs need to run, to use the proxy and certificates of the user, to find directories, and
//! to use the right language. Package runners (`npx`, `uvx`, `pipx`) get their own settings. Names that usually hold
//! credentials are excluded.

use bowline_text::is_secret_name;
use std::ffi::OsString;

/// Search paths and the user.
#[cfg(not(windows))]
const SYSTEM: &[&str] = &["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"];
#[cfg(windows)]
const SYSTEM: &[&str] = &[
    "ALLUSERSPROFILE",
    "APPDATA",
    "COMSPEC",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "OS",
    "PATH",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "PROGRAMFILES(X86)",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "USERDOMAIN",
    "USERNAME",
    "USERPROFILE",
    "WINDIR",
];

/// Network settings. Programs read the proxy variables in either case.
const NETWORK: &[&str] = &[
    "ALL_PROXY",
    "FTP_PROXY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "all_proxy",
    "ftp_proxy",
    "https_proxy",
    "http_proxy",
    "no_proxy",
    "AWS_CA_BUNDLE",
    "CARGO_HTTP_CAINFO",
    "CURL_CA_BUNDLE",
    "DENO_CERT",
    "DENO_TLS_CA_STORE",
    "GIT_SSL_CAINFO",
    "NODE_EXTRA_CA_CERTS",
    "NODE_USE_ENV_PROXY",
    "NODE_USE_SYSTEM_CA",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
];

/// Language, time zone and temporary directories.
const LOCALE: &[&str] = &["LANG", "LANGUAGE", "TEMP", "TMP", "TMPDIR", "TZ"];

/// Prefixes: the locale, the base directories, and the settings of package runners.
const PREFIXES: &[&str] = &["LC_", "XDG_", "npm_config_", "NPM_CONFIG_", "UV_", "PIP_", "PIPX_"];

/// Returns whether a program receives this variable by default.
pub(super) fn is_default(name: &str) -> bool {
    let named = [SYSTEM, NETWORK, LOCALE].into_iter().flatten().any(|known| is_same(known, name));
    named || (PREFIXES.iter().any(|prefix| name.starts_with(prefix)) && !is_credential(name))
}

/// On Windows, names of variables are case-insensitive.
fn is_same(known: &str, name: &str) -> bool {
    if cfg!(windows) { known.eq_ignore_ascii_case(name) } else { known == name }
}

/// Returns whether a variable usually holds a credential, such as `UV_PUBLISH_PASSWORD` or `npm_config_//host/:_auth`.
fn is_credential(name: &str) -> bool {
    is_secret_name(name) || name.to_ascii_lowercase().contains("auth")
}

/// Returns whether `name` matches `pattern`, in which `*` matches any characters.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return is_same(pattern, name) };
    let Some(mut name) = name.strip_prefix(start) else { return false };
    let (middle, end) = rest.rsplit_once('*').map_or(("", rest), |(middle, end)| (middle, end));
    for part in middle.split('*') {
        let Some(place) = name.find(part) else { return false };
        name = name.get(place + part.len()..).unwrap_or_default();
    }
    name.ends_with(end)
}

/// Selects the variables that a program receives: the default ones, and those that match a pattern. Values that some
/// shells would run as a function are excluded.
pub(super) fn selected(
    variables: impl Iterator<Item = (OsString, OsString)>,
    patterns: &[String],
) -> impl Iterator<Item = (OsString, OsString)> {
    variables.filter(|(name, value)| {
        let Some(name) = name.to_str() else { return false };
        let is_wanted = is_default(name) || patterns.iter().any(|pattern| matches(pattern, name));
        is_wanted && !value.as_encoded_bytes().starts_with(b"()")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(variables: &[(&str, &str)], patterns: &[&str]) -> Vec<String> {
        let variables = variables.iter().map(|(name, value)| (name.into(), value.into()));
        let patterns: Vec<_> = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        let selected = selected(variables, &patterns);
        selected.map(|(name, _)| name.into_string().unwrap()).collect()
    }

    #[test]
    fn variables_for_network_and_locale_are_passed() {
        for name in [
            "PATH",
            "HTTPS_PROXY",
            "https_proxy",
            "NO_PROXY",
            "ALL_PROXY",
            "SSL_CERT_FILE",
            "SSL_CERT_DIR",
            "NODE_EXTRA_CA_CERTS",
            "REQUESTS_CA_BUNDLE",
            "CURL_CA_BUNDLE",
            "LANG",
            "LC_ALL",
            "TMPDIR",
            "TZ",
            "XDG_CACHE_HOME",
            "npm_config_registry",
            "NPM_CONFIG_CACHE",
            "UV_INDEX_URL",
            "UV_KEYRING_PROVIDER",
            "PIP_INDEX_URL",
        ] {
            assert_eq!(names(&[(name, "x")], &[]), [name]);
        }
    }

    #[test]
    fn credentials_are_not_passed_unless_named() {
        // V-71
        for name in [
            "AWS_SECRET_ACCESS_KEY",
            "GITHUB_TOKEN",
            "NODE_OPTIONS",
            "LD_PRELOAD",
            "npm_config__authToken",
            "npm_config_//registry.example/:_authToken",
            "NPM_CONFIG__AUTH",
            "npm_config_key",
            "UV_PUBLISH_TOKEN",
            "UV_INDEX_PRIVATE_PASSWORD",
            "UVX",
            "PIP_CLIENT_SECRET",
        ] {
            assert_eq!(names(&[(name, "x")], &[]), [""; 0], "{name}");
            assert_eq!(names(&[(name, "x")], &[name]), [name]);
        }
    }

    #[test]
    fn patterns_add_to_the_default() {
        let variables = [("AWS_REGION", "eu"), ("AWS_PROFILE", "p"), ("HOME", "/"), ("X_A_Y_B_Z", "1")];
        assert_eq!(names(&variables, &["AWS_*"]), ["AWS_REGION", "AWS_PROFILE", "HOME"]);
        assert_eq!(names(&variables, &["*_REGION"]), ["AWS_REGION", "HOME"]);
        assert_eq!(names(&variables, &["X_*_Y_*_Z"]), ["HOME", "X_A_Y_B_Z"]);
        assert_eq!(names(&variables, &["X*Y*Z*Z", "AWS"]), ["HOME"]);
        assert_eq!(names(&variables, &["*"]).len(), variables.len());
        // A function that some shells would run.
        assert_eq!(names(&[("LANG", "() { :; }; id")], &["*"]), [""; 0]);
    }
}
