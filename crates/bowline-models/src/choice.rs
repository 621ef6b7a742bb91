//! Chooses a model for a request.

use super::settings::Model;
use bowline_client::choose_model;
use bowline_types::ModelPreferences;

/// Returns the index of the best model for the preferences, or `None` if there are no models.
///
/// A hint that matches a name or an alias decides. Otherwise the model with the highest grades, weighted by the
/// priorities, is chosen. The first model wins ties, and is chosen if there are no preferences.
pub(super) fn choose<'a>(
    models: impl Iterator<Item = &'a Model> + Clone,
    preferences: Option<&ModelPreferences>,
) -> Option<usize> {
    let preferences = preferences.cloned().unwrap_or_default();
    if let Some(name) = choose_model(&preferences, models.clone().flat_map(names)) {
        let mut models = models;
        return models.position(|model| names(model).any(|known| known == name));
    }
    let weights = [preferences.cost_priority, preferences.speed_priority, preferences.intelligence_priority]
        .map(Option::unwrap_or_default);
    let score = |model: &Model| {
        let grades = [model.cost, model.speed, model.intelligence];
        grades.iter().zip(weights).map(|(grade, weight)| grade * weight).sum::<f64>()
    };
    let mut best: Option<(usize, f64)> = None;
    for (place, model) in models.enumerate() {
        let score = score(model);
        if best.is_none_or(|(_, before)| score > before) {
            best = Some((place, score));
        }
    }
    best.map(|(place, _)| place)
}

fn names(model: &Model) -> impl Iterator<Item = &str> {
    std::iter::once(&model.name).chain(&model.aliases).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bowline_types::ModelHint;

    fn table() -> Vec<Model> {
        let model = |name| Model::new("p", name);
        vec![
            model("acme-medium").cost(0.6).speed(0.6).intelligence(0.6),
            model("acme-large").alias("opus").alias("gpt-5").cost(0.1).speed(0.2).intelligence(1.0),
            model("acme-small").alias("haiku").cost(1.0).speed(0.9).intelligence(0.2),
            model("twin-small").cost(1.0).speed(0.9).intelligence(0.2),
        ]
    }

    fn check(hints: &[&str], priorities: [Option<f64>; 3], expected: &str) {
        let hints: Vec<_> = hints.iter().map(|hint| ModelHint::new().name(*hint)).collect();
        let mut preferences = ModelPreferences::new().hints(hints);
        [preferences.cost_priority, preferences.speed_priority, preferences.intelligence_priority] =
            priorities;
        let table = table();
        let place = choose(table.iter(), Some(&preferences)).unwrap();
        assert_eq!(table[place].name, expected, "{preferences:?}");
    }

    #[test]
    fn hints_decide_in_their_order_by_name_and_alias() {
        // proves: SAMP-25, SAMP-26, SAMP-27
        let none = [None; 3];
        check(&["large"], none, "acme-large");
        check(&["LARGE"], none, "acme-large");
        check(&["opus"], none, "acme-large");
        check(&["haiku", "opus"], none, "acme-small");
        check(&["nothing", "gpt-5"], none, "acme-large");
        check(&["small"], none, "acme-small");
        check(&["acme"], none, "acme-medium");
        check(&["opus"], [Some(1.0), Some(1.0), Some(0.0)], "acme-large");
    }

    #[test]
    fn priorities_decide_where_no_hint_fits() {
        // proves: SAMP-34
        check(&["nothing"], [Some(1.0), None, None], "acme-small");
        check(&[], [None, Some(1.0), None], "acme-small");
        check(&[], [None, None, Some(1.0)], "acme-large");
        check(&[], [Some(0.2), Some(0.2), Some(1.0)], "acme-large");
        check(&[], [Some(0.5), Some(0.5), Some(1.0)], "acme-medium");
        check(&[], [Some(0.6), Some(0.6), Some(1.0)], "acme-small");
    }

    #[test]
    fn the_first_of_equal_models_is_chosen() {
        check(&[""], [None; 3], "acme-medium");
        check(&["nothing"], [None; 3], "acme-medium");
        check(&[], [Some(0.0), Some(0.0), Some(0.0)], "acme-medium");
        assert_eq!(choose(table().iter(), None), Some(0));
        assert_eq!(choose([].iter(), None), None);
    }
}
