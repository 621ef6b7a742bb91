//! Roots: the folders a client lets a server work in.

use crate::adapt::{Adapt, adapt_message_meta, adapt_meta};
use crate::meta::Meta;
use crate::record::record;
use crate::result::ResultType;
use crate::revision::Revision;

record! {
    /// A folder or file the server may work in.
    pub struct Root {
        /// Where it is; always a `file:` URI.
        required uri: String = "uri",
        /// The name for people.
        optional name: String = "name",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// The roots of a client.
    #[derive(Default)]
    pub struct ListRootsResult {
        /// What the result is; never written, for this result travels without it.
        optional result_type: ResultType = "resultType",
        /// The roots.
        required roots: Vec<Root> = "roots",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

impl Root {
    /// A folder or file by its absolute path, which becomes a URI.
    ///
    /// ```
    /// use bowline_types::Root;
    ///
    /// assert_eq!(Root::of_path("/srv/my files").uri, "file:///srv/my%20files");
    /// assert_eq!(Root::of_path(r"C:\work").uri, "file:///C:/work");
    /// ```
    pub fn of_path(path: &str) -> Self {
        let mut uri = String::from("file://");
        if !path.starts_with('/') {
            uri.push('/');
        }
        for byte in path.replace('\\', "/").bytes() {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' | b':' => {
                    uri.push(char::from(byte));
                }
                other => uri.extend(["%", &format!("{other:02X}")]),
            }
        }
        Self::new(uri)
    }
}

impl Adapt for Root {
    fn adapt(&mut self, to: Revision) {
        adapt_meta(&mut self.meta, to);
    }
}

impl Adapt for ListRootsResult {
    fn adapt(&mut self, to: Revision) {
        adapt_message_meta(&mut self.meta, to);
        // No revision has `resultType` here: legacy results lack it, modern answers are bare.
        self.result_type = None;
        self.roots.adapt(to);
    }
}
