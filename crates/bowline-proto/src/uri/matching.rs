//! Finds the values of template variables in a URI.

use std::collections::HashMap;

use super::percent::{decode, to_uri};
use super::scan::{Atom, Skipping, Stops, find};
use super::template::{Expression, Modifier, Operator, Part};

const MAX_URI: usize = 1024 * 1024;
/// Maximum number of values of a repeated parameter.
const MAX_VALUES: usize = 1024;

/// A template, prepared for matching.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    /// The text that every match starts with.
    prefix: String,
    atoms: Vec<Atom>,
    /// What the capture of the atom of the same index means.
    bindings: Vec<Option<Binding>>,
}

#[derive(Debug, Clone)]
enum Binding {
    /// The value of one variable, or only its first characters.
    Value { name: String, cut: Option<usize> },
    /// Named parameters, each `name=value`.
    Parameters { separator: char, parameters: Vec<Parameter> },
}

#[derive(Debug, Clone)]
struct Parameter {
    name: String,
    modifier: Modifier,
}

impl Pattern {
    pub(super) fn new(parts: &[Part]) -> Self {
        let mut pattern = Self { prefix: String::new(), atoms: Vec::new(), bindings: Vec::new() };
        let mut in_query = false;
        let mut previous = None;
        for (index, part) in parts.iter().enumerate() {
            match part {
                Part::Literal(text) => {
                    if index == 0 {
                        pattern.prefix.clone_from(text);
                    } else {
                        pattern.push(text.as_bytes(), None, None, None);
                    }
                    in_query |= text.contains('?');
                    previous = None;
                }
                Part::Expression(expression) => {
                    let later = parts.get(index + 1..).unwrap_or_default();
                    pattern.push_expression(expression, previous, later, in_query);
                    in_query |= expression.operator == Operator::Query;
                    previous = Some(expression.operator);
                }
            }
        }
        pattern
    }

    fn push(
        &mut self,
        literal: &[u8],
        capture: Option<Stops>,
        skip_to: Option<usize>,
        binding: Option<Binding>,
    ) {
        self.atoms.push(Atom { literal: literal.to_vec(), capture, skip_to });
        self.bindings.push(binding);
    }

    fn push_expression(
        &mut self,
        expression: &Expression,
        previous: Option<Operator>,
        later: &[Part],
        in_query: bool,
    ) {
        match expression.operator {
            Operator::Simple | Operator::Reserved => self.push_values(expression, "", ",", later, in_query),
            Operator::Fragment => self.push_values(expression, "#", ",", later, in_query),
            Operator::Label => self.push_values(expression, ".", ".", later, in_query),
            Operator::Segment => self.push_values(expression, "/", "/", later, in_query),
            Operator::Parameter => {
                let continued = previous == Some(Operator::Parameter);
                self.push_parameters(expression, ";", ';', Stops::new(b"/?#"), continued);
            }
            Operator::Query => self.push_parameters(expression, "?", '&', Stops::new(b"#"), false),
            Operator::Continuation => {
                let continued = matches!(previous, Some(Operator::Query | Operator::Continuation));
                self.push_parameters(expression, "&", '&', Stops::new(b"#"), continued);
            }
        }
    }

    fn push_values(
        &mut self,
        expression: &Expression,
        first: &str,
        separator: &str,
        later: &[Part],
        in_query: bool,
    ) {
        let end = self.atoms.len() + expression.variables.len();
        for (index, variable) in expression.variables.iter().enumerate() {
            let stops = value_stops(expression.operator, variable.modifier, later, in_query);
            let literal = if index == 0 { first } else { separator };
            let cut = match variable.modifier {
                Modifier::Prefix(length) => Some(length),
                Modifier::Whole | Modifier::Explode => None,
            };
            let binding = Binding::Value { name: variable.name.clone(), cut };
            // An operator with a prefix character expands to nothing if the variable has no value.
            let skip_to = (!first.is_empty()).then_some(end);
            self.push(literal.as_bytes(), Some(stops), skip_to, Some(binding));
        }
    }

    /// Adds named parameters; those of an expression that continues the one before join it, since their order
    /// is free.
    fn push_parameters(
        &mut self,
        expression: &Expression,
        first: &str,
        separator: char,
        stops: Stops,
        continued: bool,
    ) {
        let parameters = expression
            .variables
            .iter()
            .map(|variable| Parameter { name: variable.name.clone(), modifier: variable.modifier });
        if let (true, Some(Some(Binding::Parameters { parameters: known, .. }))) =
            (continued, self.bindings.last_mut())
        {
            known.extend(parameters);
            return;
        }
        let binding = Binding::Parameters { separator, parameters: parameters.collect() };
        let skip_to = Some(self.atoms.len() + 1);
        self.push(first.as_bytes(), Some(stops), skip_to, Some(binding));
    }

    pub(super) fn matches(&self, uri: &str) -> Option<Vec<(String, String)>> {
        if uri.len() > MAX_URI {
            return None;
        }
        // Some hosts expand templates by string replacement and do not encode characters.
        let uri = to_uri(uri);
        let rest = uri.strip_prefix(self.prefix.as_str())?;
        let scan = |skipping| find(&self.atoms, rest.as_bytes(), skipping);
        let may_skip = self.atoms.iter().any(|atom| atom.skip_to.is_some());
        let captures =
            scan(Skipping::Never).or_else(|| may_skip.then(|| scan(Skipping::Allowed)).flatten())?;

        let mut found = Found::default();
        for (binding, capture) in self.bindings.iter().zip(captures) {
            let (Some(binding), Some(capture)) = (binding, capture) else { continue };
            let text = rest.get(capture)?;
            match binding {
                Binding::Value { name, cut } => found.add(name, decode(text)?, *cut)?,
                Binding::Parameters { separator, parameters } => {
                    read_parameters(&mut found, text, *separator, parameters)?;
                }
            }
        }
        Some(found.values.into_iter().map(|value| (value.name.to_owned(), value.text)).collect())
    }
}

/// Returns the delimiters that end a value: those that its operator encodes, and those that start a later expression.
fn value_stops(operator: Operator, modifier: Modifier, later: &[Part], in_query: bool) -> Stops {
    let reserved = matches!(operator, Operator::Reserved | Operator::Fragment);
    let spans_segments =
        modifier == Modifier::Explode && matches!(operator, Operator::Simple | Operator::Segment);
    let mut stops = match (reserved, spans_segments) {
        (true, _) => Stops::new(b""),
        (false, true) => Stops::new(b"?#"),
        (false, false) => Stops::new(b"/?#"),
    };
    if in_query && !reserved {
        stops = stops.and(b"&");
    }
    for part in later {
        let Part::Expression(expression) = part else { continue };
        stops = match expression.operator {
            Operator::Query => stops.and(b"?#"),
            Operator::Continuation => stops.and(b"&"),
            Operator::Fragment => stops.and(b"#"),
            Operator::Parameter => stops.and(b";"),
            Operator::Simple | Operator::Reserved | Operator::Label | Operator::Segment => stops,
        };
    }
    stops
}

fn read_parameters<'p>(
    found: &mut Found<'p>,
    text: &str,
    separator: char,
    parameters: &'p [Parameter],
) -> Option<()> {
    let indices: HashMap<&str, usize> =
        parameters.iter().enumerate().map(|(index, parameter)| (parameter.name.as_str(), index)).collect();
    let mut values: Vec<Vec<String>> = vec![Vec::new(); parameters.len()];
    for (count, pair) in text.split(separator).enumerate() {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let index = *indices.get(name)?;
        let known = values.get_mut(index)?;
        let repeats = !known.is_empty() && parameters.get(index)?.modifier != Modifier::Explode;
        if repeats || count >= MAX_VALUES {
            return None;
        }
        known.push(decode(value)?);
    }
    for (parameter, values) in parameters.iter().zip(values) {
        match parameter.modifier {
            Modifier::Whole => {
                values.into_iter().try_for_each(|value| found.add(&parameter.name, value, None))?;
            }
            Modifier::Prefix(cut) => {
                values.into_iter().try_for_each(|value| found.add(&parameter.name, value, Some(cut)))?;
            }
            Modifier::Explode => found.add_each(&parameter.name, values),
        }
    }
    Some(())
}

#[derive(Default)]
struct Found<'p> {
    values: Vec<FoundValue<'p>>,
}

struct FoundValue<'p> {
    name: &'p str,
    text: String,
    cut: Option<usize>,
}

impl<'p> Found<'p> {
    /// Adds a value; `None` if it contradicts what is known of the variable or is longer than its cut.
    fn add(&mut self, name: &'p str, text: String, cut: Option<usize>) -> Option<()> {
        if cut.is_some_and(|cut| text.chars().count() > cut) {
            return None;
        }
        let Some(known) = self.values.iter_mut().find(|value| value.name == name) else {
            self.values.push(FoundValue { name, text, cut });
            return Some(());
        };
        // The longer of two prefixes wins, and the whole value wins over both.
        let replaces = cut.unwrap_or(usize::MAX) > known.cut.unwrap_or(usize::MAX);
        let (longer, shorter, length) =
            if replaces { (&text, &known.text, known.cut) } else { (&known.text, &text, cut) };
        let agrees = match length {
            Some(length) => longer.chars().take(length).eq(shorter.chars()),
            None => longer == shorter,
        };
        if replaces {
            known.text = text;
            known.cut = cut;
        }
        agrees.then_some(())
    }

    fn add_each(&mut self, name: &'p str, texts: Vec<String>) {
        self.values.extend(texts.into_iter().map(|text| FoundValue { name, text, cut: None }));
    }
}

#[cfg(test)]
mod tests {
    use super::super::{UriTemplate, Value};
    use super::*;
    use proptest::prelude::*;

    fn check(template: &str, uri: &str, expected: Option<&[(&str, &str)]>) {
        let found = UriTemplate::parse(template).unwrap().match_uri(uri);
        let found: Option<Vec<(&str, &str)>> = found
            .as_ref()
            .map(|pairs| pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect());
        assert_eq!(found.as_deref(), expected, "{template} {uri}");
    }

    #[test]
    fn a_template_without_variables_matches_itself() {
        check("note://a", "note://a", Some(&[]));
        check("note://a", "note://a/", None);
        check("note://a", "note://", None);
        check("", "", Some(&[]));
        check("", "a", None);
    }

    #[test]
    fn simple_values_stay_within_a_segment() {
        check("note://{id}", "note://7", Some(&[("id", "7")]));
        check("note://{id}", "note://a%2Fb%20c", Some(&[("id", "a/b c")]));
        check("note://{id}", "note://a:b@c,d;e=f", Some(&[("id", "a:b@c,d;e=f")]));
        check("note://{id}/x", "note://7/x", Some(&[("id", "7")]));
        for uri in
            ["note://", "note://a/b", "note://a?b", "note://a#b", "note://%zz", "note://%FF", "note://%"]
        {
            check("note://{id}", uri, None);
        }
    }

    #[test]
    fn reserved_and_exploded_values_span_segments() {
        check("file:///{+path}", "file:///a/b?c#d", Some(&[("path", "a/b?c#d")]));
        check("file:///{path*}", "file:///a/b%20c", Some(&[("path", "a/b c")]));
        check("file:///{path*}", "file:///a?b", None);
        check("file://{/path*}", "file:///a/b", Some(&[("path", "a/b")]));
        check("x:{+path}/{name}", "x:a/b/c", Some(&[("path", "a/b"), ("name", "c")]));
        check("x:{+path}x{name}", "x:1x2/x3", Some(&[("path", "1x2/"), ("name", "3")]));
        check("file:///{+path}", "file:///", None);
    }

    #[test]
    fn each_variable_matches_as_much_as_possible() {
        check("x:{name}.{ext}", "x:a.b.c", Some(&[("name", "a.b"), ("ext", "c")]));
        check("x:{a}{b}", "x:123", Some(&[("a", "12"), ("b", "3")]));
        check("x:{a}{b}", "x:1", None);
        check("x:{a,b}", "x:1,2,3", Some(&[("a", "1,2"), ("b", "3")]));
        check("x:{a,b}", "x:1", None);
    }

    #[test]
    fn the_interpretation_without_missing_parts_wins() {
        check("x:{name}{.ext}", "x:a.b.c", Some(&[("name", "a.b"), ("ext", "c")]));
        check("x:{name}{.ext}", "x:a", Some(&[("name", "a")]));
        check("x:a{/b,c}", "x:a/1/2", Some(&[("b", "1"), ("c", "2")]));
        check("x:a{/b,c}", "x:a/1", Some(&[("b", "1")]));
        check("x:a{/b,c}", "x:a", Some(&[]));
        check("x:a{/b,c}", "x:a/", None);
        check("x:a{/b,c}", "x:a/1/2/3", None);
        check("x:a{#b}", "x:a#b/c#d", Some(&[("b", "b/c#d")]));
        check("x:{+a}{#b}", "x:1/2#3", Some(&[("a", "1/2"), ("b", "3")]));
        check("x:{+a}{#b}", "x:1/2", Some(&[("a", "1/2")]));
    }

    #[test]
    fn query_parameters_match_in_any_order_and_are_optional() {
        let template = "x:a{?b,c}";
        check(template, "x:a", Some(&[]));
        check(template, "x:a?b=1&c=2", Some(&[("b", "1"), ("c", "2")]));
        check(template, "x:a?c=2&b=1", Some(&[("b", "1"), ("c", "2")]));
        check(template, "x:a?c=2%26+3=4", Some(&[("c", "2&+3=4")]));
        check(template, "x:a?c=&b", Some(&[("b", ""), ("c", "")]));
        for uri in
            ["x:a?", "x:a?d=1", "x:a?b=1&b=2", "x:a?b=1&", "x:a?b=1#c", "x:a?b=%", "x:a&b=1", "x:a?B=1"]
        {
            check(template, uri, None);
        }
        check("x:{+p}{?q}{#f}", "x:a/b?q=1/2?#f", Some(&[("p", "a/b"), ("q", "1/2?"), ("f", "f")]));
        check("x:{+p}{?q}", "x:a/b", Some(&[("p", "a/b")]));
    }

    #[test]
    fn continued_queries_share_their_parameters() {
        check("x:a{?b}{&c}", "x:a?c=1&b=2", Some(&[("b", "2"), ("c", "1")]));
        check("x:a?v={v}{&b,c}", "x:a?v=1&c=2&b=3", Some(&[("v", "1"), ("b", "3"), ("c", "2")]));
        check("x:a?v={v}{&b,c}", "x:a?v=1", Some(&[("v", "1")]));
        check("x:a?v={v}&w={w}", "x:a?v=1&w=2", Some(&[("v", "1"), ("w", "2")]));
        check("x:a?v={v}&w={w}", "x:a?v=1&w=2&w=3", None);
    }

    #[test]
    fn path_parameters_match_in_any_order() {
        check("x:{a}{;b,c}/d", "x:1;c;b=2/d", Some(&[("a", "1"), ("b", "2"), ("c", "")]));
        check("x:{a}{;b}{;c}", "x:1;c=3;b=2", Some(&[("a", "1"), ("b", "2"), ("c", "3")]));
        check("x:{a}{;b,c}", "x:1", Some(&[("a", "1")]));
        check("x:{a}{;b}", "x:1;d=2", None);
    }

    #[test]
    fn exploded_parameters_repeat() {
        check("x:a{?b*,c}", "x:a?b=1&c=2&b=3", Some(&[("b", "1"), ("b", "3"), ("c", "2")]));
        let repeated = |count: usize| format!("x:a?{}", vec!["b=1"; count].join("&"));
        let template = UriTemplate::parse("x:a{?b*}").unwrap();
        assert_eq!(template.match_uri(&repeated(MAX_VALUES)).map(|found| found.len()), Some(MAX_VALUES));
        assert_eq!(template.match_uri(&repeated(MAX_VALUES + 1)), None);
    }

    #[test]
    fn a_variable_has_one_value() {
        check("x:{a}/{a}", "x:1/1", Some(&[("a", "1")]));
        check("x:{a}/{a}", "x:1/2", None);
        check("x:{/v:1,v}", "x:/v/value", Some(&[("v", "value")]));
        check("x:{v}/{v:2}", "x:value/va", Some(&[("v", "value")]));
        check("x:{v:1}/{v:3}", "x:v/val", Some(&[("v", "val")]));
        check("x:{v:1}/{v}", "x:w/value", None);
        check("x:{v:2}", "x:val", None);
        check("x:{v:2}", "x:%C3%A9%C3%A9", Some(&[("v", "\u{e9}\u{e9}")]));
        check("x:{?v:2}", "x:?v=val", None);
    }

    #[test]
    fn unencoded_characters_match_too() {
        check("x:caf\u{e9}/{a}", "x:caf\u{e9}/b c", Some(&[("a", "b c")]));
        check("x:caf\u{e9}/{a}", "x:caf%C3%A9/%E2%82%AC", Some(&[("a", "\u{20ac}")]));
    }

    #[test]
    fn the_length_of_a_uri_is_bounded() {
        let template = UriTemplate::parse("x:{a}").unwrap();
        assert!(template.match_uri(&format!("x:{}", "a".repeat(MAX_URI - 2))).is_some());
        assert!(template.match_uri(&format!("x:{}", "a".repeat(MAX_URI - 1))).is_none());
    }

    /// Each of these takes a backtracking matcher longer than anyone waits.
    #[test]
    fn hostile_uris_take_linear_time() {
        let variables =
            |between: &str| (0..50).map(|index| format!("{{v{index}}}")).collect::<Vec<_>>().join(between);
        for (template, unit, length, matches) in [
            (format!("x:{}", variables("")), "a", MAX_URI, true),
            (format!("x:{}!", variables("-")), "a-", MAX_URI, false),
            (format!("x:{}!", variables("a")), "a", MAX_URI / 16, false),
            (format!("x:{}", variables("aaaaaaab")), "a", MAX_URI / 16, false),
            (format!("x:{}", variables("-")).replace("{v", "{+v"), "-", MAX_URI / 16, true),
            (format!("x:{}!", variables("/").replace("{v", "{+v")), "/a", MAX_URI / 16, false),
            (format!("x:{}", variables("").replace("{v", "{/v")), "/a", MAX_URI / 16, false),
            (format!("x{{?{}}}", variables(",").replace(['{', '}'], "")), "?&", MAX_URI / 16, false),
        ] {
            let uri = format!("x:{}", unit.repeat((length - 2) / unit.len()));
            let found = UriTemplate::parse(&template).unwrap().match_uri(&uri);
            assert_eq!(found.map(|values| values.len()), matches.then_some(50), "{template}");
        }
    }

    fn expand(template: &UriTemplate, values: &[(&str, &str)]) -> String {
        let value = |name: &str| {
            values.iter().find(|(known, _)| *known == name).map(|(_, value)| Value::from(*value))
        };
        template.expand(value).unwrap()
    }

    proptest! {
        #[test]
        fn matching_undoes_expanding(a in "[\\PC\\s]{1,8}", b in "[A-Za-z0-9._~-]{1,8}", c in "\\PC{0,6}", d in any::<String>()) {
            let values = [("a", a.as_str()), ("b", &b), ("c", &c), ("d", &d)];
            let owned: Vec<(String, String)> =
                values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            for template in [
                "x://{a}/{b}{?c,d}",
                "x:{a}:{b}{;c}{?d}",
                "x:{a,b}{?c}{&d}",
                "x{/a,b}?fixed=1{&c,d}",
                "x:{a*}/{b}/{a:3}{?c,d}",
            ] {
                let template = UriTemplate::parse(template).unwrap();
                let uri = expand(&template, &values);
                prop_assert_eq!(template.match_uri(&uri), Some(owned.clone()), "{}", uri);
            }
        }

        #[test]
        fn reserved_values_round_trip_unless_they_contain_delimiters(a in "[^%?#]{1,12}", b in "[^%]{1,12}") {
            let values = [("a", a.as_str()), ("b", &b)];
            let template = UriTemplate::parse("x:{+a}{?c}{#b}").unwrap();
            let uri = expand(&template, &values);
            prop_assert_eq!(template.match_uri(&uri), Some(vec![("a".to_owned(), a), ("b".to_owned(), b)]));
        }

        #[test]
        fn missing_parameters_stay_missing(a in "[a-z]{1,4}", b in prop::option::of("\\PC{0,4}"), c in prop::option::of("\\PC{0,4}")) {
            let template = UriTemplate::parse("x:{a}{?b,c}").unwrap();
            let mut values = vec![("a", a.as_str())];
            values.extend(b.iter().map(|b| ("b", b.as_str())));
            values.extend(c.iter().map(|c| ("c", c.as_str())));
            let found = template.match_uri(&expand(&template, &values)).unwrap();
            prop_assert_eq!(found.len(), values.len());
            for ((name, value), (expected_name, expected)) in found.iter().zip(values) {
                prop_assert_eq!((name.as_str(), value.as_str()), (expected_name, expected));
            }
        }

        #[test]
        fn a_match_expands_to_the_same_uri(uri in "x:[ab./-]{0,12}") {
            for template in ["x:{a}/{b}", "x:{+a}/{b}", "x:{a}{/b}", "x:{a}.{b}{/c*}", "x:{a}{.b}"] {
                let template = UriTemplate::parse(template).unwrap();
                let Some(found) = template.match_uri(&uri) else { continue };
                let values: Vec<(&str, &str)> = found.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
                let again = expand(&template, &values);
                prop_assert_eq!(again.replace("%2F", "/"), uri.clone());
            }
        }
    }
}
