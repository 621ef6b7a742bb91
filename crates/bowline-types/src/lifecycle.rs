//! The handshake of the legacy era and the discovery of the modern era.

use crate::adapt::{Adapt, adapt_cache, adapt_message_meta, adapt_result_type};
use crate::cache::CacheScope;
use crate::capability::{ClientCapabilities, ServerCapabilities};
use crate::implementation::Implementation;
use crate::meta::Meta;
use crate::record::record;
use crate::result::ResultType;
use crate::revision::Revision;

record! {
    /// Params of `initialize` (legacy).
    pub struct InitializeParams {
        /// The newest revision that the client supports. Any text is accepted, because clients may be newer than this code.
        required protocol_version: String = "protocolVersion",
        /// What the client can do.
        required capabilities: ClientCapabilities = "capabilities",
        /// Name and version of the client.
        required client_info: Implementation = "clientInfo",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// Result of `initialize` (legacy).
    pub struct InitializeResult {
        /// Type of the result.
        optional result_type: ResultType = "resultType",
        /// The revision that the server chose.
        required protocol_version: String = "protocolVersion",
        /// What the server can do.
        required capabilities: ServerCapabilities = "capabilities",
        /// Name and version of the server.
        required server_info: Implementation = "serverInfo",
        /// Instructions for the model.
        optional instructions: String = "instructions",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// Result of `server/discover` (from 2026-07-28).
    pub struct DiscoverResult {
        /// Type of the result.
        optional result_type: ResultType = "resultType",
        /// Supported revisions. If there is a legacy one, the server also answers `initialize`.
        required supported_versions: Vec<String> = "supportedVersions",
        /// What the server can do.
        required capabilities: ServerCapabilities = "capabilities",
        /// Instructions for the model.
        optional instructions: String = "instructions",
        /// How long the result may be cached, in milliseconds.
        whole ttl_ms: u64 = "ttlMs",
        /// Who may cache it.
        optional cache_scope: CacheScope = "cacheScope",
        /// Metadata; contains the name and version of the server.
        optional meta: Meta = "_meta",
    }
}

impl Adapt for InitializeParams {
    fn adapt(&mut self, to: Revision) {
        adapt_message_meta(&mut self.meta, to);
        self.capabilities.adapt(to);
        self.client_info.adapt(to);
    }
}

impl Adapt for InitializeResult {
    fn adapt(&mut self, to: Revision) {
        self.capabilities.adapt(to);
        self.server_info.adapt(to);
        adapt_result_type(&mut self.result_type, to);
        adapt_message_meta(&mut self.meta, to);
    }
}

impl Adapt for DiscoverResult {
    fn adapt(&mut self, to: Revision) {
        self.capabilities.adapt(to);
        adapt_result_type(&mut self.result_type, to);
        adapt_message_meta(&mut self.meta, to);
        adapt_cache(&mut self.ttl_ms, &mut self.cache_scope, to);
    }
}
