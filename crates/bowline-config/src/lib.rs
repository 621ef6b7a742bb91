//! Reads the configuration files of MCP clients into one [`Config`] that keeps the origin of every value.
//!
//! A [`Loader`] reads [`Source`]s: it parses each file into nodes with positions, recognizes its [`Dialect`], expands
//! variables with the [`Environment`], and merges the entries by precedence. Errors are collected: an invalid entry is
//! dropped and does not affect others. [`explain`] prints the result with secrets masked; [`diff`] compares two results.

mod bowline;
mod bowline_sections;
mod codex;
mod commands;
mod dialect;
mod diff;
mod entry;
mod env_file;
mod environment;
mod expand;
mod explain;
mod fields;
mod gateway_auth;
mod goose;
mod identity;
mod jsonc;
mod keys;
mod known;
mod lint;
mod load;
mod mcp_servers;
mod model;
mod node;
mod oauth;
mod open;
mod quantity;
mod reference;
mod registry;
mod registry_input;
mod report;
mod sections;
mod text;
mod toml;
mod vscode;
mod yaml;
mod zed;

pub use self::commands::ChildCommands;
pub use self::dialect::Dialect;
pub use self::diff::{Diff, diff};
pub use self::env_file::{parse_env_file, read_env_file};
pub use self::environment::{Commands, Environment, Input, Inputs, Platform};
pub use self::expand::Strictness;
pub use self::explain::explain;
pub use self::keys::{Absent, Key, SECTIONS, Section};
pub use self::known::{KnownFile, known_files};
pub use self::lint::{decides_code, runs_arguments};
pub use self::load::{Disk, Loader, MAX_FILE, Presence, ReadFile, Source};
pub use self::model::{
    AuthMode, CallbackHost, CommandLaunch, Config, InheritEnv, Launch, LimitsConfig, OauthConfig, OauthGrant,
    Prefer, RootConfig, Scope, Share, Start, Unknown, UpstreamConfig, UpstreamSettings, UrlLaunch,
};
pub use self::oauth::OAUTH_EXCEPTIONS;
pub use self::open::{open_regular, read_regular};
pub use self::quantity::parse_duration;
pub use self::reference::reference;
pub use self::report::{ConfigError, Notice, NoticeKind, Origin};
pub use self::sections::{
    AnnotationsConfig, AuditConfig, ConnectConfig, DisclosureConfig, DpopMode, GatewayAuthConfig,
    GatewayConfig, InspectorConfig, IntrospectionConfig, JwksSource, KeySource, ModelConfig, ProviderConfig,
    ProviderKind, ResumeMode, RuleConfig, SamplingConfig, SessionMode, SessionsConfig, StoreConfig,
    TaskAfter, TasksConfig,
};
pub use self::text::{Text, names_a_secret};
