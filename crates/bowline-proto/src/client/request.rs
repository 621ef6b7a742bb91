//! What a client puts into its requests.

use crate::{encode::splice, server::RevisionSet};
use bowline_types::{
    Adapt, ClientCapabilities, Era, Id, Implementation, InitializeParams, LoggingLevel, Meta, RawJson,
    Revision, meta,
};
use bytes::Bytes;

/// What a client says of itself.
#[derive(Clone, Debug)]
pub struct ClientProfile {
    /// Name and version.
    pub info: Implementation,
    /// What it can be asked.
    pub capabilities: ClientCapabilities,
    /// Supported revisions.
    pub revisions: RevisionSet,
}

/// What goes along with a request besides its parameters.
#[derive(Clone, Debug, Default)]
pub struct RequestOptions {
    /// The progress token, if the sender wants progress.
    pub progress_token: Option<Id>,
    /// Asks for log messages from this level on, where the revision lets each request do so.
    pub log_level: Option<LoggingLevel>,
    /// Further keys of `_meta`.
    pub meta: Meta,
}

impl ClientProfile {
    /// Creates a client with all revisions and no capabilities.
    pub fn new(info: Implementation) -> Self {
        Self { info, capabilities: ClientCapabilities::default(), revisions: RevisionSet::ALL }
    }

    /// Returns the parameters of `initialize`.
    pub fn initialize(&self, revision: Revision) -> RawJson {
        let mut params =
            InitializeParams::new(revision.as_str(), self.capabilities.clone(), self.info.clone());
        params.adapt(revision);
        RawJson::of(&params).unwrap_or_else(|_| RawJson::empty_object())
    }

    /// Completes the parameters of a request, given as the text of an object without `_meta`.
    ///
    /// In the modern era every request describes itself: version, capabilities and identity are added here.
    pub fn params(&self, revision: Revision, object: &[u8], options: RequestOptions) -> RawJson {
        let mut meta = options.meta;
        if let Some(token) = &options.progress_token {
            insert(&mut meta, meta::key::PROGRESS_TOKEN, token);
        }
        if revision.era() == Era::Modern {
            let mut capabilities = self.capabilities.clone();
            capabilities.adapt(revision);
            insert(&mut meta, meta::key::PROTOCOL_VERSION, revision.as_str());
            insert(&mut meta, meta::key::CLIENT_CAPABILITIES, &capabilities);
            insert(&mut meta, meta::key::CLIENT_INFO, &self.info);
            if let Some(level) = &options.log_level {
                insert(&mut meta, meta::key::LOG_LEVEL, level);
            }
        }
        let mut text = object.trim_ascii().to_vec();
        if !meta.is_empty() {
            let mut member = b"\"_meta\":".to_vec();
            // A map of raw JSON always serializes.
            drop(serde_json::to_writer(&mut member, &meta));
            splice(&mut text, &member);
        }
        RawJson::parse(Bytes::from(text)).unwrap_or_else(|_| RawJson::empty_object())
    }
}

fn insert<T: serde::Serialize + ?Sized>(meta: &mut Meta, key: &str, value: &T) {
    if let Ok(value) = RawJson::of(value) {
        meta.insert(key, value);
    }
}
