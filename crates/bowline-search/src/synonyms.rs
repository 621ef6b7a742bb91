//! Synonyms in the context of tools, such as `delete` and `remove`.
//!
//! The list contains only what is common across software: actions, business objects, and abbreviations. Ambiguous words
//! do more harm than good.

use super::stem::stem;
use std::{collections::HashMap, sync::LazyLock};

/// Returns the synonyms of a word, as stems.
pub(super) fn of(word: &str) -> &'static [String] {
    SYNONYMS.get(word).map_or(&[], Vec::as_slice)
}

static SYNONYMS: LazyLock<HashMap<String, Vec<String>>> = LazyLock::new(|| {
    let mut kin: HashMap<String, Vec<String>> = HashMap::new();
    for group in GROUPS {
        let group: Vec<String> = group.split(' ').map(stemmed).collect();
        for word in &group {
            kin.entry(word.clone()).or_default().extend(group.iter().filter(|other| *other != word).cloned());
        }
    }
    kin
});

fn stemmed(word: &str) -> String {
    let mut word = word.to_owned();
    stem(&mut word);
    word
}

const GROUPS: &[&str] = &[
    // Actions.
    "add create insert make new open register",
    "delete destroy drop erase remove",
    "browse enumerate list show",
    "fetch get read retrieve show view",
    "change edit modify set update",
    "find look lookup query search",
    "post send tell write",
    "execute launch run start trigger",
    "abort cancel end kill stop terminate",
    "clone copy duplicate fork",
    "answer reply respond",
    "book reserve schedule plan",
    "attach upload",
    "download export save",
    "accept approve confirm",
    "decline deny refuse reject",
    "activate enable",
    "deactivate disable",
    "mute silence snooze suppress",
    "restore revert rollback undo",
    "access grant invite permission share",
    "keep store",
    // Objects.
    "appointment event meeting",
    "colleague member people person teammate user",
    "contact person",
    "buyer client customer",
    "bug issue task ticket",
    "article goods item product",
    "inventory stock",
    "delivery parcel shipment shipping",
    "bill invoice",
    "coupon discount promotion voucher",
    "chargeback dispute",
    "charge pay payment",
    "money refund reimburse",
    "comment note remark",
    "email mail",
    "holiday vacation",
    "absent away office",
    "automatic automation filter rule",
    "credential key password secret",
    "alarm alert notification warning",
    "incident outage",
    "measurement metric statistic usage",
    "host machine node server",
    "expire lifecycle retention",
    "duration hour minute time",
    "link url",
    "image photo picture",
    "emoji reaction",
    "direction route travel",
    "forecast rain temperature weather",
    "directory folder",
    "version revision",
    // Abbreviations.
    "app application",
    "auth authentication authorization",
    "config configuration setting",
    "db database",
    "doc document",
    "env environment",
    "info information detail",
    "k8s kubernetes",
    "msg message",
    "org organization",
    "pr pull",
    "repo repository",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn synonyms_are_looked_up_in_stemmed_form() {
        assert_eq!(of(&stemmed("mails")), ["email"]);
        assert_eq!(of(&stemmed("deleting")), ["destroy", "drop", "eras", "remov"]);
        assert_eq!(of("weath"), [""; 0]);
        assert!(of(&stemmed("show")).iter().any(|kin| kin == "list"));
        assert!(of(&stemmed("show")).iter().any(|kin| kin == "read"));
    }

    #[test]
    fn no_word_is_its_own_synonym() {
        for (word, kin) in SYNONYMS.iter() {
            assert!(!kin.contains(word), "{word}");
        }
    }
}
