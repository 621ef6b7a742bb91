//! The nearest known word to one that is not known.

/// The candidate that was most likely meant, if one is near enough to ask.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let folded = fold(word);
    let reach = if folded.len() <= 4 { 1 } else { 2 };
    candidates
        .into_iter()
        .filter(|candidate| *candidate != word)
        .map(|candidate| (distance(&folded, &fold(candidate)), candidate))
        .filter(|(distance, _)| *distance <= reach)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Case and separators are what people mix up most, so they do not count.
fn fold(word: &str) -> Vec<char> {
    word.chars().filter(|c| !matches!(c, '_' | '-')).flat_map(char::to_lowercase).take(64).collect()
}

/// How many insertions, removals, replacements and swaps of neighbors lead from one word to the other.
fn distance(left: &[char], right: &[char]) -> usize {
    let width = right.len();
    let at = |row: &[usize], index: usize| row.get(index).copied().unwrap_or(usize::MAX / 2);
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=width).collect();
    let mut previous = None;
    for (index, a) in left.iter().enumerate() {
        let mut row = vec![index + 1];
        for (column, b) in right.iter().enumerate() {
            let mut best = (at(&above, column) + usize::from(a != b))
                .min(at(&above, column + 1) + 1)
                .min(at(&row, column) + 1);
            let swapped = column > 0 && previous == Some(b) && right.get(column - 1) == Some(a);
            if swapped {
                best = best.min(at(&before, column - 1) + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut above, row);
        previous = Some(a);
    }
    at(&above, width)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn case_and_separators_do_not_count() {
        assert_eq!(nearest("env_file", ["envFile", "env"]), Some("envFile"));
        assert_eq!(nearest("Command", ["command"]), Some("command"));
    }

    #[test]
    fn a_typing_mistake_is_near_and_another_word_is_not() {
        assert_eq!(nearest("comand", ["args", "command"]), Some("command"));
        assert_eq!(nearest("agrs", ["args", "env"]), Some("args"));
        assert_eq!(nearest("colour", ["command", "args", "env"]), None);
        assert_eq!(nearest("url", ["env", "cwd"]), None);
        assert_eq!(nearest("NONE", ["HOME"]), None);
        assert_eq!(nearest("", ["a", "ab"]), Some("a"));
    }
}
