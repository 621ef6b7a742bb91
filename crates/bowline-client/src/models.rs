//! Chooses a model by the hints of a server.

use bowline_types::ModelPreferences;

/// Chooses among `available` models by the server's hints, for handlers of
/// [`on_sample`](crate::ClientBuilder::on_sample).
///
/// The hints are tried in order, and the first model whose name contains one is chosen, regardless of the priorities.
/// Returns `None` if no hint matches; the handler then has to use the priorities.
///
/// ```
/// use bowline_client::choose_model;
/// use bowline_types::{ModelHint, ModelPreferences};
///
/// let hints = vec![ModelHint::new().name("large"), ModelHint::new().name("small")];
/// let preferences = ModelPreferences::new().hints(hints);
/// assert_eq!(choose_model(&preferences, ["acme-small-2", "acme-medium-1"]), Some("acme-small-2"));
/// ```
pub fn choose_model<'a>(
    preferences: &ModelPreferences,
    available: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let available: Vec<&str> = available.into_iter().collect();
    let hints = preferences.hints.iter().flatten().filter_map(|hint| hint.name.as_deref());
    let fitting = |hint: &str| available.iter().copied().find(|model| contains(model, hint));
    hints.filter(|hint| !hint.is_empty()).find_map(fitting)
}

/// Compares without case.
fn contains(model: &str, hint: &str) -> bool {
    model.to_lowercase().contains(&hint.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bowline_types::ModelHint;

    fn check(hints: &[&str], expected: Option<&str>) {
        let hints: Vec<_> = hints.iter().map(|hint| ModelHint::new().name(*hint)).collect();
        let mut preferences = ModelPreferences::new().hints(hints);
        // The priorities favor the cheapest model, but hints take precedence.
        preferences.cost_priority = Some(1.0);
        let available = ["tiny-1", "acme-sonnet-3", "acme-opus-3", "other-sonnet"];
        assert_eq!(choose_model(&preferences, available), expected);
    }

    #[test]
    fn the_first_hint_that_fits_wins() {
        // proves: SAMP-25, SAMP-26, SAMP-27
        check(&["opus", "sonnet"], Some("acme-opus-3"));
        check(&["sonnet", "opus"], Some("acme-sonnet-3"));
        check(&["haiku", "other"], Some("other-sonnet"));
        check(&["Sonnet"], Some("acme-sonnet-3"));
        check(&["haiku"], None);
        check(&[""], None);
        check(&[], None);
    }
}
