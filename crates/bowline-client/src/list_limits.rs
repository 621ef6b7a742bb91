//! Limits the size of a complete list, over all pages.

use crate::{Error, Result};
use bowline_types::{Method, RawJson, RawMap};
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, SeqAccess, Visitor},
};
use std::{
    collections::HashSet,
    fmt,
    hash::{BuildHasher, RandomState},
};

/// The maximum number of pages.
const MAX_PAGES: usize = 10_000;
/// The maximum length of a cursor.
const MAX_CURSOR: usize = 64 * 1024;

/// The maximum size of a complete list. A larger list is refused as a whole.
///
/// In memory a list takes several times its size on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListLimits {
    /// The maximum number of bytes of all pages. Default: 8 MiB.
    pub bytes: usize,
    /// The maximum number of entries of all pages. Default: 10,000.
    pub entries: usize,
}

impl Default for ListLimits {
    fn default() -> Self {
        Self { bytes: 8 * 1024 * 1024, entries: 10_000 }
    }
}

impl ListLimits {
    /// Sets the maximum number of bytes.
    #[must_use]
    pub fn bytes(mut self, bytes: usize) -> Self {
        self.bytes = bytes;
        self
    }

    /// Sets the maximum number of entries.
    #[must_use]
    pub fn entries(mut self, entries: usize) -> Self {
        self.entries = entries;
        self
    }
}

/// Counts the pages of one list. Code that reads a list page by page calls it before it decodes a page and before it
/// requests the next one.
///
/// ```
/// use bowline_client::{ListBudget, ListLimits};
/// use bowline_types::{Method, RawJson};
///
/// let mut budget = ListBudget::new(ListLimits::default().entries(2));
/// let page = RawJson::parse(r#"{"tools":[{"name":"a"},{"name":"b"},{"name":"c"}]}"#)?;
/// let error = budget.take(Method::ListTools, &page).unwrap_err();
/// assert!(error.is_too_large());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ListBudget {
    limits: ListLimits,
    bytes: usize,
    entries: usize,
    /// Hashes of the cursors, which may be long.
    cursors: HashSet<u64>,
    fingerprint: RandomState,
}

impl ListBudget {
    /// Creates an empty budget.
    pub fn new(limits: ListLimits) -> Self {
        Self { limits, bytes: 0, entries: 0, cursors: HashSet::new(), fingerprint: RandomState::new() }
    }

    /// Counts a page of the list that `method` returns. Fails if the list is too large.
    pub fn take(&mut self, method: Method, page: &RawJson) -> Result<()> {
        let list = || format!("the result of `{method}` (page {})", self.cursors.len() + 1);
        self.bytes = self.bytes.saturating_add(page.as_bytes().len());
        if self.bytes > self.limits.bytes {
            return Err(Error::too_large(list(), format!("{} bytes for a list", self.limits.bytes)));
        }
        self.entries = self.entries.saturating_add(count_entries(method, page));
        if self.entries > self.limits.entries {
            return Err(Error::too_large(list(), format!("{} entries for a list", self.limits.entries)));
        }
        Ok(())
    }

    /// Records the cursor of the next page. Fails if cursors repeat or there are too many pages.
    pub fn follow(&mut self, cursor: &str) -> Result<()> {
        if cursor.len() > MAX_CURSOR {
            return Err(Error::too_large("the cursor of a list", format!("{MAX_CURSOR} bytes")));
        }
        if self.cursors.len() >= MAX_PAGES {
            return Err(Error::too_large("the list", format!("{MAX_PAGES} pages")));
        }
        if !self.cursors.insert(self.fingerprint.hash_one(cursor)) {
            return Err(Error::malformed("the list", "a cursor is repeated"));
        }
        Ok(())
    }
}

/// Returns the number of entries of a page. Zero if the page is invalid, which is reported when it is decoded.
fn count_entries(method: Method, page: &RawJson) -> usize {
    let member = match method {
        Method::ListTools => "tools",
        Method::ListPrompts => "prompts",
        Method::ListResources => "resources",
        Method::ListResourceTemplates => "resourceTemplates",
        _ => return 0,
    };
    let members: Option<RawMap> = page.decode().ok();
    let count = members.and_then(|members| members.decode::<Count>(member).ok().flatten());
    count.map_or(0, |Count(count)| count)
}

/// The length of an array, without its elements.
struct Count(usize);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Counter;
        impl<'de> Visitor<'de> for Counter {
            type Value = Count;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Count, A::Error> {
                let mut count = 0;
                while entries.next_element::<IgnoredAny>()?.is_some() {
                    count += 1;
                }
                Ok(Count(count))
            }
        }
        deserializer.deserialize_seq(Counter)
    }
}
