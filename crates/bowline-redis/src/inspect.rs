//! Checks the settings of a server.

use bowline_store::{Finding, StoreError};
use redis::aio::MultiplexedConnection;

use crate::failure;

/// The oldest version that is supported.
const OLDEST: u32 = 7;

/// What `INFO` says.
pub(crate) struct Info(String);

impl Info {
    pub(crate) async fn read(connection: &mut MultiplexedConnection) -> Result<Self, StoreError> {
        let info: String = redis::cmd("INFO").query_async(connection).await.map_err(failure::of_read)?;
        Ok(Self(info))
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
    }

    fn version(&self) -> String {
        match (self.get("valkey_version"), self.get("redis_version")) {
            (Some(version), _) => format!("Valkey {version}"),
            (None, Some(version)) => format!("Redis {version}"),
            (None, None) => "unknown".to_owned(),
        }
    }

    /// Refuses a server that is too old or that throws records away.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let major =
            self.get("redis_version").and_then(|version| version.split('.').next()?.parse::<u32>().ok());
        if major.is_some_and(|major| major < OLDEST) {
            return Err(StoreError::invalid(format!(
                "{} is too old; Redis {OLDEST} or later is needed",
                self.version()
            )));
        }
        if self.get("cluster_enabled") == Some("1") {
            tracing::warn!(
                "Redis is part of a cluster; a namespace is on one shard, and a move of it is not followed"
            );
        }
        match self.get("maxmemory_policy") {
            None | Some("noeviction") => Ok(()),
            Some(policy) => Err(StoreError::invalid(format!(
                "Redis removes records when memory is short (maxmemory-policy {policy}); set `maxmemory-policy noeviction`"
            ))),
        }
    }

    /// Warns of a server that keeps nothing.
    pub(crate) fn warn(&self) {
        if self.get("aof_enabled") == Some("0") {
            tracing::warn!(
                "Redis loses the latest records when it ends (appendonly no); set `appendonly yes`"
            );
        }
    }

    pub(crate) fn findings(&self, appendfsync: Option<&str>) -> Vec<Finding> {
        let mut findings = vec![Finding::ok("version", self.version())];
        findings.push(match self.get("maxmemory_policy") {
            Some("noeviction") => Finding::ok("eviction policy", "noeviction"),
            Some(policy) => Finding::error("eviction policy", policy)
                .advice("records are removed when memory is short; set `maxmemory-policy noeviction`"),
            None => {
                Finding::warning("eviction policy", "unknown").advice("make sure that it is `noeviction`")
            }
        });
        findings.push(match (self.get("aof_enabled"), appendfsync) {
            (Some("1"), Some("always")) => Finding::ok("durability", "append-only file, written at once"),
            (Some("1"), fsync) => Finding::ok(
                "durability",
                format!("append-only file, appendfsync {}", fsync.unwrap_or("not readable")),
            )
            .advice("a power failure can lose the last second; `appendfsync always` does not, and is slower"),
            _ => Finding::warning("durability", "none")
                .advice("records are lost when the server ends; set `appendonly yes`"),
        });
        let replicas = self.get("connected_slaves").unwrap_or("0");
        findings.push(match (self.get("role"), replicas) {
            (Some("master") | None, "0") => Finding::ok("role", "primary without replicas"),
            (Some("master") | None, replicas) => {
                Finding::ok("role", format!("primary with {replicas} replicas")).advice(
                    "a failover can lose acknowledged writes; `wait=1` in the URL makes that less likely",
                )
            }
            (Some(role), _) => Finding::error("role", role).advice("name the primary in the URL"),
        });
        if let Some(memory) = self.get("used_memory_human") {
            let most = self.get("maxmemory_human").filter(|most| *most != "0B").unwrap_or("no limit");
            findings.push(Finding::ok("memory", format!("{memory} of {most}")));
        }
        findings
    }
}

#[cfg(test)]
mod tests {
    use bowline_store::Level;

    use super::Info;

    #[test]
    fn a_server_that_evicts_or_is_old_is_refused() {
        let info = |lines: &str| Info(lines.replace(' ', "\r\n"));
        assert!(info("redis_version:7.0.15 maxmemory_policy:noeviction").check().is_ok());
        let error = info("redis_version:7.0.15 maxmemory_policy:allkeys-lru").check().unwrap_err();
        assert!(error.to_string().contains("set `maxmemory-policy noeviction`"), "{error}");
        let error = info("redis_version:6.2.1 maxmemory_policy:noeviction").check().unwrap_err();
        assert_eq!(error.to_string(), "Redis 6.2.1 is too old; Redis 7 or later is needed");
        let valkey =
            info("redis_version:7.2.4 valkey_version:8.1.0 maxmemory_policy:noeviction aof_enabled:0");
        assert!(valkey.check().is_ok());
        let findings = valkey.findings(None);
        assert_eq!(findings[0].value, "Valkey 8.1.0");
        assert_eq!(findings[2].level, Level::Warning);
    }
}
