//! Removes endings that do not change the meaning of a word: plurals, `-ing` and `-ed`.
//!
//! This is lighter than the Porter stemmer: an ending is removed only if the rest is still the same word, so `string`,
//! `need` and `status` stay unchanged. Queries and tools use the same stems, so a stem need not be a word.

/// Removes the ending of a lower-case word.
pub(super) fn stem(word: &mut String) {
    if !word.is_ascii() || word.len() < 4 {
        return;
    }
    singular(word);
    for ending in ["ing", "ed"] {
        let Some(left) = word.strip_suffix(ending) else { continue };
        if left.len() < 3 || !has_vowel(left) {
            break;
        }
        word.truncate(left.len());
        undouble(word);
        break;
    }
    // `create`, `creating` and `created` have the same stem.
    if word.len() > 3 && word.ends_with('e') {
        word.pop();
    }
}

fn singular(word: &mut String) {
    if word.ends_with("ies") && word.len() > 4 {
        word.truncate(word.len() - 3);
        word.push('y');
    } else if ["sses", "xes", "ches", "shes", "zes"].iter().any(|ending| word.ends_with(ending)) {
        word.truncate(word.len() - 2);
    } else if word.ends_with('s') && !["ss", "us", "is"].iter().any(|ending| word.ends_with(ending)) {
        word.pop();
    }
}

/// `tagging` comes from `tag`, but `calling` from `call`.
fn undouble(word: &mut String) {
    let bytes = word.as_bytes();
    if let [.., before, last] = bytes
        && before == last
        && !b"lsz".contains(last)
    {
        word.pop();
    }
}

fn has_vowel(word: &str) -> bool {
    word.bytes().any(|byte| b"aeiouy".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(forms: &[&str]) {
        let stems: Vec<String> = forms
            .iter()
            .map(|form| {
                let mut word = (*form).to_owned();
                stem(&mut word);
                word
            })
            .collect();
        assert!(stems.windows(2).all(|pair| pair.first() == pair.last()), "{forms:?} become {stems:?}");
    }

    #[test]
    fn forms_of_one_word_match() {
        check(&["create", "creates", "created", "creating"]);
        check(&["repository", "repositories"]);
        check(&["tag", "tags", "tagged", "tagging"]);
        check(&["issue", "issues"]);
        check(&["branch", "branches"]);
        check(&["box", "boxes"]);
        check(&["list", "lists", "listed", "listing"]);
        check(&["call", "calls", "called", "calling"]);
        check(&["schedule", "schedules", "scheduled", "scheduling"]);
        check(&["process", "processes"]);
        check(&["message", "messages", "messaged", "messaging"]);
    }

    #[test]
    fn words_that_only_look_inflected_stay_apart() {
        for (word, kept) in [
            ("string", "string"),
            ("status", "status"),
            ("need", "need"),
            ("bus", "bus"),
            ("king", "king"),
            ("s3", "s3"),
            ("über", "über"),
        ] {
            let mut stemmed = word.to_owned();
            stem(&mut stemmed);
            assert_eq!(stemmed, kept);
        }
    }
}
