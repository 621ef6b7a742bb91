//! The content of an approval: what a server would run or connect to, as a digest and as lines for the user.

use super::file_digest::DigestCache;
use bowline_config::{
    CallbackHost, CommandLaunch, Environment, OauthConfig, OauthGrant, Prefer, Text, UpstreamSettings,
    UrlLaunch, decides_code, names_a_secret, parse_env_file, read_env_file, runs_arguments,
};
use bowline_proto::seal::digest;
use bowline_text::{hex, visible};
use std::path::{Path, PathBuf};

/// What makes up a candidate, for the digest and for people.
#[derive(Default)]
pub(super) struct Content {
    pub(super) parts: Vec<Vec<u8>>,
    pub(super) lines: Vec<String>,
    pub(super) dangers: Vec<String>,
    pub(super) files: Vec<PathBuf>,
}

/// What decides which files a command runs, beside what the entry says.
pub(super) struct Run {
    /// The program that was found.
    program: Option<PathBuf>,
    /// The values in its file of variables.
    values: Vec<Text>,
}

/// How many words of a command are looked at for files of the project.
const MAX_WORDS: usize = 2000;
/// How many folders that a command names its other words may be relative to.
const MAX_FOLDERS: usize = 16;

impl Content {
    /// Something that anybody may see.
    pub(super) fn part(&mut self, what: &str, value: &str) {
        self.mark(what, value.as_bytes());
        self.lines.push(format!("{what}: {}", visible(value)));
    }

    fn mark(&mut self, what: &str, value: &[u8]) {
        self.parts.extend([what.as_bytes().to_vec(), value.to_vec()]);
    }

    /// A text, which may hold secrets: as it was written, so that a variable may get another value; and as it is where
    /// that is hidden, so that nothing changes unseen.
    fn text(&mut self, what: &str, text: &Text) {
        self.part(what, text.written());
        if !text.is_secret() || text.shown().contains("***") {
            self.mark("value", text.expose().as_bytes());
        }
    }

    pub(super) fn command(
        &mut self,
        launch: &CommandLaunch,
        environment: &Environment,
        workspace: Option<&Path>,
    ) -> Run {
        let folder = launch.cwd.as_ref().map(|folder| Path::new(folder.expose())).or(workspace);
        let file = launch.env_file.as_ref().map(|file| Path::new(file.expose()));
        // Read once: what is shown and what is approved are the same content.
        let content = file.map(|path| read_env_file(path).unwrap_or_default()).unwrap_or_default();
        let in_file = file.map(|path| parse_env_file(path, &content).0).unwrap_or_default();
        // The variables that the program gets: those of the entry, then those of its file, then the user's.
        let of_file = in_file.iter().rev().find(|(name, _)| name == "PATH").map(|(_, path)| path.expose());
        let search = match launch.env.get("PATH") {
            Some(path) => path.as_ref().map(Text::expose),
            None => of_file.or_else(|| environment.variable("PATH")),
        };
        self.text("command", &launch.program);
        let found = resolve(launch.program.expose(), search, folder);
        self.part(
            "program",
            &found.as_ref().map_or_else(|| "not found".to_owned(), |path| path.display().to_string()),
        );
        for argument in &launch.args {
            self.text("argument", argument);
        }
        for (name, value) in &launch.env {
            match value {
                Some(value) => {
                    self.text(&format!("variable {}", visible(name)), value);
                    self.danger_of(name);
                }
                None => self.part("without variable", name),
            }
        }
        if let Some(file) = &launch.env_file {
            self.text("variables of", file);
            // What is in it decides what runs as much as the command does.
            self.mark("content", &digest(&[content.as_bytes()]));
        }
        for (name, value) in &in_file {
            // A file of variables holds secrets of the user, as a rule; what decides which code runs is none.
            let is_shown = decides_code(name) && !names_a_secret(name);
            let shown = if is_shown { value.expose() } else { "***" };
            self.lines.push(format!("variable {}, from the file: {}", visible(name), visible(shown)));
            self.danger_of(name);
        }
        let arguments = launch.args.iter().map(Text::expose);
        if let Some((program, argument)) = runs_arguments(launch.program.expose(), arguments) {
            self.danger(&format!(
                "`{} {}` runs code from its arguments",
                visible(&program),
                visible(argument)
            ));
        }
        for word in launch.args.iter().map(Text::expose).chain([launch.program.expose()]) {
            if let Some(pattern) = dangerous_pattern(word) {
                self.danger(&format!("`{}` {pattern}", visible(word)));
            }
        }
        match &launch.cwd {
            Some(folder) => self.text("folder", folder),
            None => {
                self.part("folder", &workspace.map(|path| path.display().to_string()).unwrap_or_default());
            }
        }
        Run { program: found, values: in_file.into_iter().map(|(_, value)| value).collect() }
    }

    fn danger(&mut self, what: &str) {
        self.dangers.push(format!("DANGER: {what}"));
    }

    fn danger_of(&mut self, variable: &str) {
        if decides_code(variable) {
            self.danger(&format!("the variable `{}` changes which code the program runs", visible(variable)));
        }
    }

    /// Files of the project that the command names: the program, arguments, and what variables name. They come with the
    /// project, so their content decides what runs.
    pub(super) fn project_files(
        &mut self,
        launch: &CommandLaunch,
        run: &Run,
        workspace: Option<&Path>,
        project: &[&Path],
        cache: &DigestCache,
    ) {
        let folder = launch.cwd.as_ref().map(|folder| Path::new(folder.expose())).or(workspace);
        let base = folder.unwrap_or_else(|| Path::new(""));
        let values = launch.env.values().flatten().chain([&launch.program]).chain(&launch.args);
        let values = values.chain(&run.values).flat_map(|text| words(text.expose()));
        let words: Vec<&str> = values.take(MAX_WORDS + 1).collect();
        if words.len() > MAX_WORDS {
            self.danger("it has too many arguments to check all of them for project files");
        }
        // A word may be relative to a folder that another one names, as in `--directory folder run server.py`.
        let folders = words.iter().map(|word| base.join(word)).filter(|path| path.is_dir());
        let bases: Vec<PathBuf> = std::iter::once(base.to_owned()).chain(folders.take(MAX_FOLDERS)).collect();
        let named = bases.iter().flat_map(|base| words.iter().map(|word| base.join(word)));
        let mut seen = std::collections::BTreeSet::new();
        for path in run.program.clone().into_iter().chain(named) {
            let is_inside = |path: &Path| {
                let whole = |folder: &Path| folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
                project.iter().any(|folder| path.starts_with(folder) || path.starts_with(whole(folder)))
            };
            let Ok(real) = path.canonicalize() else { continue };
            if !(is_inside(&real) || is_inside(&path)) || !seen.insert(real) {
                continue;
            }
            let Some((content, is_whole)) = cache.digest(&path) else { continue };
            if !is_whole {
                let shown = visible(&path.display().to_string());
                self.danger(&format!("`{shown}` is too large; only its start, length and time are compared"));
            }
            self.mark(&format!("content of {}", path.display()), &content);
            let start = content.get(..8).unwrap_or_default();
            self.lines.push(format!("content of {}: {}…", visible(&path.display().to_string()), hex(start)));
            self.files.push(path);
        }
    }

    pub(super) fn url(&mut self, launch: &UrlLaunch) {
        self.text("url", &launch.url);
        for (name, value) in &launch.headers {
            self.text(&format!("header {}", visible(name)), value);
        }
        for word in launch.headers_helper.iter().flatten() {
            self.text("command for headers", word);
        }
        if launch.prefer == Prefer::Sse {
            self.part("transport", "sse");
        }
        if let Some(oauth) = &launch.oauth {
            self.login(oauth);
        }
    }

    /// The settings of a login decide who gets credentials, and what they are for.
    fn login(&mut self, oauth: &OauthConfig) {
        let texts = [
            ("client id", &oauth.client_id),
            ("client secret", &oauth.client_secret),
            ("metadata of the authorization server", &oauth.metadata_url),
            ("issuer", &oauth.issuer),
            ("authorization URL", &oauth.authorization_url),
            ("token URL", &oauth.token_url),
            ("resource", &oauth.resource),
            ("client metadata document", &oauth.client_metadata_url),
            ("private key", &oauth.private_key),
            ("assertion", &oauth.assertion_file),
        ];
        for (what, text) in texts.iter().filter_map(|(what, text)| Some((what, text.as_ref()?))) {
            self.text(what, text);
        }
        for scope in &oauth.scopes {
            self.part("scope", scope);
        }
        for (name, value) in &oauth.authorization_params {
            self.text(&format!("login parameter {}", visible(name)), value);
        }
        match oauth.grant {
            OauthGrant::AuthorizationCode => {}
            OauthGrant::ClientCredentials => self.part("login", "as the client itself"),
            _ => self.part("login", "with an assertion of the platform"),
        }
        if let Some(port) = oauth.callback_port {
            self.part("callback port", &port.to_string());
        }
        if oauth.callback_host == Some(CallbackHost::Localhost) {
            self.part("callback host", "localhost");
        }
        if oauth.dpop {
            self.part("tokens", "bound to a key");
        }
        for exception in &oauth.allow {
            self.danger(&format!("it allows the exception `{exception}` from the rules of a login"));
            self.mark("exception", exception.as_bytes());
        }
    }

    /// Texts that models read as the server's, and texts that the server itself gets.
    pub(super) fn settings(&mut self, settings: &UpstreamSettings) {
        for (tool, name) in &settings.rename {
            self.part(&format!("tool {} is shown as", visible(tool)), name);
        }
        for (tool, text) in &settings.describe {
            self.part(&format!("tool {} is described as", visible(tool)), text);
        }
        for root in &settings.roots {
            self.text("root", &root.uri);
        }
    }
}

/// The parts of a text that may name a file: the text, its words, what is behind `=` in them, and the parts of lists.
fn words(text: &str) -> Vec<&str> {
    let parts =
        text.split_whitespace().flat_map(|word| [Some(word), word.split_once('=').map(|(_, value)| value)]);
    let parts = parts.flatten().flat_map(|word| std::iter::once(word).chain(word.split([':', ';', ','])));
    let mut words: Vec<&str> = std::iter::once(text).chain(parts).filter(|word| !word.is_empty()).collect();
    words.dedup();
    words
}

/// Why an argument deserves a second look.
fn dangerous_pattern(word: &str) -> Option<&'static str> {
    let has =
        |part: &str| word.split(|letter: char| !letter.is_ascii_alphanumeric()).any(|found| found == part);
    let places =
        ["/.ssh", "/.aws", "/.gnupg", "/.kube", "/.config/gcloud", "/etc/shadow", "id_rsa", "id_ed25519"];
    if has("sudo") || has("doas") {
        Some("asks for administrator rights")
    } else if word.contains("rm -rf") || word.contains("rm -fr") {
        Some("removes whole folders")
    } else if places.iter().any(|place| word.contains(place)) {
        Some("refers to a location of keys or passwords")
    } else {
        None
    }
}

/// The file that would be run for a program.
pub(super) fn resolve(program: &str, search: Option<&str>, folder: Option<&Path>) -> Option<PathBuf> {
    let within = |path: &Path| folder.map_or_else(|| path.to_owned(), |folder| folder.join(path));
    if program.contains(std::path::is_separator) {
        return Some(within(Path::new(program)));
    }
    let folders =
        std::env::split_paths(search?).map(|entry| within(&entry).join(program)).collect::<Vec<_>>();
    folders.into_iter().find(|path| is_program(path))
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    ["", "exe", "cmd", "bat"].iter().any(|ending| path.with_extension(ending).is_file())
}
