//! How peers meet: the handshake of the legacy era and the discovery of the modern one.

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
        /// The newest revision the client speaks; any text, for the client may be newer than this code.
        required protocol_version: String = "protocolVersion",
        /// What the client can do.
        required capabilities: ClientCapabilities = "capabilities",
        /// Who the client is.
        required client_info: Implementation = "clientInfo",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// The server's answer to `initialize` (legacy).
    pub struct InitializeResult {
        /// What the result is.
        optional result_type: ResultType = "resultType",
        /// The revision the server has chosen.
        required protocol_version: String = "protocolVersion",
        /// What the server can do.
        required capabilities: ServerCapabilities = "capabilities",
        /// Who the server is.
        required server_info: Implementation = "serverInfo",
        /// How to use the server, for the model.
        optional instructions: String = "instructions",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// The server's answer to `server/discover` (from 2026-07-28).
    pub struct DiscoverResult {
        /// What the result is.
        optional result_type: ResultType = "resultType",
        /// The revisions the server speaks; legacy ones mean that it also answers `initialize`.
        required supported_versions: Vec<String> = "supportedVersions",
        /// What the server can do.
        required capabilities: ServerCapabilities = "capabilities",
        /// How to use the server, for the model.
        optional instructions: String = "instructions",
        /// For how many milliseconds the answer may be kept.
        whole ttl_ms: u64 = "ttlMs",
        /// Who may keep it.
        optional cache_scope: CacheScope = "cacheScope",
        /// Metadata; says who the server is.
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
