//! Which crate may use which: the table, and the check of it.

use std::collections::BTreeSet;

use crate::finding::Finding;
use crate::workspace::{Kind, Package};

/// The whole direction of dependencies between the crates below `crates/`. What is not listed may not be used, except by
/// tests. A new crate needs a row here.
const TABLE: &[(&str, May)] = &[
    (JSON, May::Use(&[])),
    (TYPES, May::Use(&[JSON])),
    (PROTO, May::Use(&[JSON, TYPES])),
    (MACROS, May::Use(&[])),
    (STORE, May::Use(&[TYPES, PROTO])),
    (SQLITE, May::Use(&[STORE])),
    (POSTGRES, May::Use(&[STORE])),
    (REDIS, May::Use(&[STORE])),
    (STORES, May::Use(&[PROTO, STORE, SQLITE, POSTGRES, REDIS])),
    (AUTH, May::Use(&[TYPES, PROTO])),
    (SERVER, May::Use(&[TYPES, PROTO, MACROS, STORE, TEXT])),
    // Only to connect to a server in the same process, behind a feature.
    (CLIENT, May::Use(&[TYPES, PROTO, SERVER, TEXT])),
    (HTTP, May::Use(&[TYPES, PROTO, SERVER, CLIENT, AUTH, STORE, FILES])),
    (FILES, May::Use(&[])),
    (TEXT, May::Use(&[])),
    (SEARCH, May::Use(&[TYPES, TEXT])),
    (POLICY, May::Use(&[TYPES, PROTO, CLIENT, TEXT, FILES])),
    // Configuration is written in the vocabulary of rules and search, which know nothing of files.
    (CONFIG, May::Use(&[TYPES, PROTO, TEXT, POLICY, SEARCH])),
    (MODELS, May::Use(&[TYPES, PROTO, CLIENT, HTTP])),
    (TELEMETRY, May::Use(&[TYPES, PROTO, TEXT, HTTP, STORE])),
    (
        HOST,
        May::Use(&[
            TYPES, PROTO, SERVER, CLIENT, HTTP, AUTH, STORE, STORES, TEXT, CONFIG, POLICY, MODELS, TELEMETRY,
            SEARCH,
        ]),
    ),
    (TRANSCRIPT, May::Use(&[TYPES])),
    (TESTING, May::Use(&[TYPES, PROTO, AUTH, STORE, SERVER, CLIENT, HTTP, TRANSCRIPT])),
    (FACADE, May::UseAll),
    // The built-in servers are written the way a user writes one.
    (SERVERS, May::Use(&[TYPES, PROTO, SERVER, HTTP, STORE, TEXT, FACADE])),
    (INSPECTOR, May::Use(&[TYPES, PROTO, SERVER, CLIENT, HTTP, TEXT, POLICY, HOST, FILES, TRANSCRIPT])),
    (
        CLI,
        May::Use(&[
            TYPES, PROTO, SERVER, CLIENT, HTTP, STORE, STORES, TEXT, CONFIG, POLICY, MODELS, TELEMETRY,
            SEARCH, HOST, SERVERS, TRANSCRIPT, FILES, INSPECTOR,
        ]),
    ),
];

/// Crates that touch neither the world nor time nor chance.
pub(super) const PURE: [&str; 3] = [JSON, TYPES, PROTO];

/// What the pure crates must not depend on.
const IMPURE: [&str; 5] = ["tokio", "hyper", "reqwest", "rand", "getrandom"];

const JSON: &str = "bowline-json";
const TYPES: &str = "bowline-types";
const PROTO: &str = "bowline-proto";
const MACROS: &str = "bowline-macros";
const STORE: &str = "bowline-store";
const SQLITE: &str = "bowline-sqlite";
const POSTGRES: &str = "bowline-postgres";
const REDIS: &str = "bowline-redis";
const STORES: &str = "bowline-stores";
const AUTH: &str = "bowline-auth";
const FILES: &str = "bowline-files";
const SERVER: &str = "bowline-server";
const CLIENT: &str = "bowline-client";
const HTTP: &str = "bowline-http";
const TEXT: &str = "bowline-text";
const SEARCH: &str = "bowline-search";
const POLICY: &str = "bowline-policy";
const CONFIG: &str = "bowline-config";
const MODELS: &str = "bowline-models";
const TELEMETRY: &str = "bowline-telemetry";
const HOST: &str = "bowline-host";
const TESTING: &str = "bowline-testing";
const TRANSCRIPT: &str = "bowline-transcript";
const FACADE: &str = "bowline";
const SERVERS: &str = "bowline-servers";
const INSPECTOR: &str = "bowline-inspector";
const CLI: &str = "bowline-cli";

#[derive(Clone, Copy, Debug)]
enum May {
    Use(&'static [&'static str]),
    UseAll,
}

impl May {
    fn allows(self, name: &str) -> bool {
        match self {
            Self::Use(names) => names.contains(&name),
            Self::UseAll => true,
        }
    }
}

pub(super) fn findings(packages: &[Package]) -> Vec<Finding> {
    let members: BTreeSet<&str> = packages.iter().map(|package| package.name.as_str()).collect();
    packages
        .iter()
        .filter(|package| package.manifest.starts_with("crates/"))
        .flat_map(|package| of_package(package, &members))
        .collect()
}

fn of_package(package: &Package, members: &BTreeSet<&str>) -> Vec<Finding> {
    let name = package.name.as_str();
    let finding = |sentence: String| Finding::new(&package.manifest, 1, sentence);
    let Some((_, may)) = TABLE.iter().find(|(row, _)| *row == name) else {
        return vec![finding(format!(
            "`{name}` has no row in the direction table of xtask/src/tidy/direction.rs"
        ))];
    };
    let used: BTreeSet<&str> = package
        .dependencies
        .iter()
        .filter(|dependency| dependency.kind != Kind::Dev)
        .map(|dependency| dependency.name.as_str())
        .collect();
    let mut findings = Vec::new();
    for other in used {
        if members.contains(other) && !may.allows(other) {
            findings.push(finding(format!(
                "`{name}` must not depend on `{other}`: the direction table has no such edge"
            )));
        }
        if PURE.contains(&name) && IMPURE.contains(&other) {
            findings.push(finding(format!(
                "`{name}` must not depend on `{other}`: it is free of IO, clock and randomness"
            )));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::{May, TABLE, findings};
    use crate::workspace::{Dependency, Kind, Package};

    fn package(name: &str, dependencies: &[(&str, Kind)]) -> Package {
        Package {
            name: name.to_owned(),
            manifest: format!("crates/{name}/Cargo.toml"),
            dependencies: dependencies
                .iter()
                .map(|&(name, kind)| Dependency { name: name.to_owned(), kind })
                .collect(),
            features: Vec::new(),
            is_published_library: true,
        }
    }

    /// Returns whether `user` may have `used` in its `[dependencies]`.
    fn may(user: &str, used: &str) -> bool {
        findings(&[package(user, &[(used, Kind::Normal)]), package(used, &[])]).is_empty()
    }

    #[test]
    fn the_direction_is_enforced() {
        assert!(may("bowline-types", "bowline-json"));
        assert!(may("bowline-proto", "bowline-json"));
        assert!(!may("bowline-json", "bowline-types"));
        assert!(may("bowline-proto", "bowline-types"));
        assert!(!may("bowline-types", "bowline-proto"));
        assert!(!may("bowline-server", "bowline-client"));
        assert!(may("bowline-client", "bowline-server"));
        assert!(may("bowline-http", "bowline-auth"));
        assert!(!may("bowline-server", "bowline-auth"));
        assert!(may("bowline-server", "bowline-store"));
        assert!(!may("bowline-client", "bowline-store"));
        assert!(may("bowline-server", "bowline-macros"));
        assert!(!may("bowline-client", "bowline-macros"));
        assert!(!may("bowline-macros", "bowline-types"));
        assert!(may("bowline-testing", "bowline-http"));
        assert!(!may("bowline-testing", "bowline-host"));
        assert!(may("bowline", "bowline-testing"));
        assert!(may("bowline-cli", "bowline-host"));
        assert!(!may("bowline-cli", "bowline-testing"));
        assert!(may("bowline-cli", "bowline-transcript"));
        assert!(!may("bowline-host", "bowline-cli"));
        for leaf in ["config", "policy", "models", "telemetry", "search", "text"] {
            let leaf = format!("bowline-{leaf}");
            assert!(may("bowline-host", &leaf), "{leaf}");
            assert!(!may(&leaf, "bowline-host"), "{leaf}");
        }
        assert!(may("bowline-config", "bowline-policy"));
        assert!(!may("bowline-policy", "bowline-config"));
    }

    #[test]
    fn the_table_has_no_cycle_and_no_unknown_crate() {
        let mut below: Vec<&str> = Vec::new();
        let mut waiting: Vec<_> = TABLE.to_vec();
        while !waiting.is_empty() {
            let before = waiting.len();
            waiting.retain(|&(name, may)| {
                let is_ready = match may {
                    May::Use(names) => names.iter().all(|used| below.contains(used)),
                    // The facade may use what cargo lets it use; only crates that use the facade lie above it.
                    May::UseAll => true,
                };
                if is_ready {
                    below.push(name);
                }
                !is_ready
            });
            assert_ne!(waiting.len(), before, "a cycle or a stranger in {waiting:?}");
        }
    }

    #[test]
    fn tests_may_use_any_crate_and_builds_may_not() {
        let client = package("bowline-client", &[]);
        assert_eq!(
            findings(&[package("bowline-server", &[("bowline-client", Kind::Dev)]), client.clone()]),
            []
        );
        assert_eq!(
            findings(&[package("bowline-server", &[("bowline-client", Kind::Build)]), client]).len(),
            1
        );
        assert_eq!(findings(&[package("bowline-proto", &[("tokio", Kind::Dev)])]), []);
    }

    #[test]
    fn pure_crates_stay_pure() {
        assert!(!may("bowline-types", "getrandom"));
        let found = findings(&[package("bowline-proto", &[("tokio", Kind::Normal)])]);
        assert_eq!(
            found[0].to_string(),
            "crates/bowline-proto/Cargo.toml:1: `bowline-proto` must not depend on `tokio`: it is free of IO, clock and randomness"
        );
        assert_eq!(findings(&[package("bowline-server", &[("tokio", Kind::Normal)])]), []);
    }

    #[test]
    fn a_crate_without_a_row_is_reported() {
        assert_eq!(findings(&[package("bowline-unknown", &[])]).len(), 1);
    }

    #[test]
    fn packages_outside_of_crates_are_free() {
        let free = |name: &str, folder: &str| {
            let used = package("bowline-server", &[]);
            let user = package(name, &[("bowline-server", Kind::Normal)]);
            findings(&[Package { manifest: format!("{folder}/Cargo.toml"), ..user }, used])
        };
        assert_eq!(free("xtask", "xtask"), []);
        assert_eq!(free("bowline-tests", "tests"), []);
    }
}
