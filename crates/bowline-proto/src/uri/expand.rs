//! Expands URI templates.

use std::borrow::Cow;
use std::fmt;

use super::percent::{push_encoded, push_reserved, starts_with_triplet};
use super::template::{Expression, Modifier, Operator, Part, UriTemplate, Variable};

/// The value of a template variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value<'a> {
    /// A string.
    Text(Cow<'a, str>),
    /// A list of strings; an empty list counts as undefined.
    List(Vec<Cow<'a, str>>),
    /// Strings by name; an empty map counts as undefined.
    Map(Vec<(Cow<'a, str>, Cow<'a, str>)>),
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl<'a> From<&'a String> for Value<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

/// Why a template cannot be expanded: a prefix such as `{x:3}` of a list or map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpandError {
    variable: String,
}

impl ExpandError {
    /// Returns the variable whose value does not fit.
    pub fn variable(&self) -> &str {
        &self.variable
    }
}

impl fmt::Display for ExpandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected `{}` to be a string, because the template uses a prefix of it", self.variable)
    }
}

impl std::error::Error for ExpandError {}

impl UriTemplate {
    /// Expands the template. `value` returns the value of each variable; `None` omits it.
    ///
    /// Fails if the template takes a prefix of a variable whose value is a list or a map.
    pub fn expand<'v>(&self, value: impl Fn(&str) -> Option<Value<'v>>) -> Result<String, ExpandError> {
        let mut out = String::with_capacity(self.as_str().len() * 2);
        for part in self.parts() {
            match part {
                Part::Literal(text) => out.push_str(text),
                Part::Expression(expression) => expand_expression(&mut out, expression, &value)?,
            }
        }
        Ok(out)
    }
}

/// How an operator writes its values.
struct Style {
    first: &'static str,
    separator: char,
    naming: Naming,
    /// How one text is written into a URI.
    push: fn(&mut String, &str),
}

#[derive(Clone, Copy, PartialEq)]
enum Naming {
    Unnamed,
    /// `name=value`, and `name=` where the value is empty.
    Named,
    /// `name=value`, and `name` where the value is empty.
    NamedBare,
}

impl Style {
    fn of(operator: Operator) -> Self {
        let unnamed = |first, separator, push| Self { first, separator, naming: Naming::Unnamed, push };
        match operator {
            Operator::Simple => unnamed("", ',', push_encoded),
            Operator::Reserved => unnamed("", ',', push_reserved),
            Operator::Fragment => unnamed("#", ',', push_reserved),
            Operator::Label => unnamed(".", '.', push_encoded),
            Operator::Segment => unnamed("/", '/', push_encoded),
            Operator::Parameter => {
                Self { first: ";", separator: ';', naming: Naming::NamedBare, push: push_encoded }
            }
            Operator::Query => Self { first: "?", separator: '&', naming: Naming::Named, push: push_encoded },
            Operator::Continuation => {
                Self { first: "&", separator: '&', naming: Naming::Named, push: push_encoded }
            }
        }
    }
}

fn expand_expression<'v>(
    out: &mut String,
    expression: &Expression,
    value: &impl Fn(&str) -> Option<Value<'v>>,
) -> Result<(), ExpandError> {
    let mut writer = Writer { style: Style::of(expression.operator), out, started: false };
    for variable in &expression.variables {
        match value(&variable.name) {
            None => {}
            Some(Value::Text(text)) => {
                let text = match variable.modifier {
                    Modifier::Prefix(length) => prefix(&text, length, expression.operator),
                    Modifier::Whole | Modifier::Explode => &text,
                };
                writer.item(&variable.name, text);
            }
            Some(Value::List(items)) => {
                refuse_prefix(variable)?;
                if variable.modifier == Modifier::Explode {
                    for item in &items {
                        writer.item(&variable.name, item);
                    }
                } else {
                    writer.joined(&variable.name, items.iter());
                }
            }
            Some(Value::Map(entries)) => {
                refuse_prefix(variable)?;
                if variable.modifier == Modifier::Explode {
                    for (key, item) in &entries {
                        writer.entry(key, item);
                    }
                } else {
                    writer.joined(&variable.name, entries.iter().flat_map(|(key, item)| [key, item]));
                }
            }
        }
    }
    Ok(())
}

fn refuse_prefix(variable: &Variable) -> Result<(), ExpandError> {
    match variable.modifier {
        Modifier::Prefix(_) => Err(ExpandError { variable: variable.name.clone() }),
        Modifier::Whole | Modifier::Explode => Ok(()),
    }
}

/// Returns the first `length` characters. In operators that keep percent triplets, each triplet counts as one and is
/// not cut.
fn prefix(text: &str, length: usize, operator: Operator) -> &str {
    let passes_triplets = matches!(operator, Operator::Reserved | Operator::Fragment);
    let mut end = 0;
    for _ in 0..length {
        let rest = text.get(end..).unwrap_or_default();
        let Some(next) = rest.chars().next() else { break };
        end += if passes_triplets && starts_with_triplet(rest.as_bytes()) { 3 } else { next.len_utf8() };
    }
    text.get(..end).unwrap_or(text)
}

struct Writer<'o> {
    style: Style,
    out: &'o mut String,
    started: bool,
}

impl Writer<'_> {
    fn separate(&mut self) {
        if self.started {
            self.out.push(self.style.separator);
        } else {
            self.out.push_str(self.style.first);
            self.started = true;
        }
    }

    fn name(&mut self, name: &str, empty: bool) {
        match self.style.naming {
            Naming::Unnamed => return,
            Naming::Named | Naming::NamedBare => self.out.push_str(name),
        }
        if !(empty && self.style.naming == Naming::NamedBare) {
            self.out.push('=');
        }
    }

    fn item(&mut self, name: &str, text: &str) {
        self.separate();
        self.name(name, text.is_empty());
        (self.style.push)(self.out, text);
    }

    /// One member of an exploded map: its key takes the place of the variable's name.
    fn entry(&mut self, key: &str, text: &str) {
        self.separate();
        (self.style.push)(self.out, key);
        if !text.is_empty() || self.style.naming != Naming::NamedBare {
            self.out.push('=');
        }
        (self.style.push)(self.out, text);
    }

    fn joined<'t>(&mut self, name: &str, texts: impl Iterator<Item = &'t Cow<'t, str>>) {
        for (index, text) in texts.enumerate() {
            if index == 0 {
                self.separate();
                self.name(name, false);
            } else {
                self.out.push(',');
            }
            (self.style.push)(self.out, text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(name: &str) -> Option<Value<'static>> {
        let list =
            |items: &[&'static str]| Value::List(items.iter().map(|item| Cow::Borrowed(*item)).collect());
        let text = match name {
            "count" => return Some(list(&["one", "two", "three"])),
            "dom" => return Some(list(&["example", "com"])),
            "list" => return Some(list(&["red", "green", "blue"])),
            "none" => return Some(list(&[])),
            "empty_keys" => return Some(Value::Map(Vec::new())),
            "keys" => {
                let entries = [("semi", ";"), ("dot", "."), ("comma", ",")];
                return Some(Value::Map(entries.map(|(key, item)| (key.into(), item.into())).into()));
            }
            "dub" => "me/too",
            "hello" => "Hello World!",
            "half" => "50%",
            "var" => "value",
            "who" => "fred",
            "base" => "http://example.com/home/",
            "path" => "/foo/bar",
            "v" => "6",
            "x" => "1024",
            "y" => "768",
            "empty" => "",
            "greek" => "\u{3b1}\u{3b2}\u{3b3}",
            "triplet" => "a%20b",
            _ => return None,
        };
        Some(Value::from(text))
    }

    fn check(rows: &[(&str, &str)]) {
        for (template, expected) in rows {
            let expanded = UriTemplate::parse(template).unwrap().expand(value).unwrap();
            assert_eq!(&expanded, expected, "{template}");
        }
    }

    #[test]
    fn literals_and_the_four_levels_of_rfc_6570_section_1_2() {
        check(&[
            ("{var}", "value"),
            ("'{var}'", "'value'"),
            ("{hello}", "Hello%20World%21"),
            ("{+var}", "value"),
            ("{+hello}", "Hello%20World!"),
            ("{+path}/here", "/foo/bar/here"),
            ("here?ref={+path}", "here?ref=/foo/bar"),
            ("X{#var}", "X#value"),
            ("X{#hello}", "X#Hello%20World!"),
            ("{#var}", "#value"),
            ("{#hello}", "#Hello%20World!"),
            ("map?{x,y}", "map?1024,768"),
            ("{x,hello,y}", "1024,Hello%20World%21,768"),
            ("{+x,hello,y}", "1024,Hello%20World!,768"),
            ("{+path,x}/here", "/foo/bar,1024/here"),
            ("{#x,hello,y}", "#1024,Hello%20World!,768"),
            ("{#path,x}/here", "#/foo/bar,1024/here"),
            ("X{.var}", "X.value"),
            ("X{.x,y}", "X.1024.768"),
            ("{/var}", "/value"),
            ("{/var,x}/here", "/value/1024/here"),
            ("{;x,y}", ";x=1024;y=768"),
            ("{;x,y,empty}", ";x=1024;y=768;empty"),
            ("{?x,y}", "?x=1024&y=768"),
            ("{?x,y,empty}", "?x=1024&y=768&empty="),
            ("?fixed=yes{&x}", "?fixed=yes&x=1024"),
            ("{&x,y,empty}", "&x=1024&y=768&empty="),
            ("{var:3}", "val"),
            ("{var:30}", "value"),
            ("{list}", "red,green,blue"),
            ("{list*}", "red,green,blue"),
            ("{keys}", "semi,%3B,dot,.,comma,%2C"),
            ("{keys*}", "semi=%3B,dot=.,comma=%2C"),
            ("{+path:6}/here", "/foo/b/here"),
            ("{+list}", "red,green,blue"),
            ("{+list*}", "red,green,blue"),
            ("{+keys}", "semi,;,dot,.,comma,,"),
            ("{+keys*}", "semi=;,dot=.,comma=,"),
            ("{#path:6}/here", "#/foo/b/here"),
            ("{#list}", "#red,green,blue"),
            ("{#list*}", "#red,green,blue"),
            ("{#keys}", "#semi,;,dot,.,comma,,"),
            ("{#keys*}", "#semi=;,dot=.,comma=,"),
            ("X{.var:3}", "X.val"),
            ("X{.list}", "X.red,green,blue"),
            ("X{.list*}", "X.red.green.blue"),
            ("X{.keys}", "X.semi,%3B,dot,.,comma,%2C"),
            ("X{.keys*}", "X.semi=%3B.dot=..comma=%2C"),
            ("{/var:1,var}", "/v/value"),
            ("{/list}", "/red,green,blue"),
            ("{/list*}", "/red/green/blue"),
            ("{/list*,path:4}", "/red/green/blue/%2Ffoo"),
            ("{/keys}", "/semi,%3B,dot,.,comma,%2C"),
            ("{/keys*}", "/semi=%3B/dot=./comma=%2C"),
            ("{;hello:5}", ";hello=Hello"),
            ("{;list}", ";list=red,green,blue"),
            ("{;list*}", ";list=red;list=green;list=blue"),
            ("{;keys}", ";keys=semi,%3B,dot,.,comma,%2C"),
            ("{;keys*}", ";semi=%3B;dot=.;comma=%2C"),
            ("{?var:3}", "?var=val"),
            ("{?list}", "?list=red,green,blue"),
            ("{?list*}", "?list=red&list=green&list=blue"),
            ("{?keys}", "?keys=semi,%3B,dot,.,comma,%2C"),
            ("{?keys*}", "?semi=%3B&dot=.&comma=%2C"),
            ("{&var:3}", "&var=val"),
            ("{&list}", "&list=red,green,blue"),
            ("{&list*}", "&list=red&list=green&list=blue"),
            ("{&keys}", "&keys=semi,%3B,dot,.,comma,%2C"),
            ("{&keys*}", "&semi=%3B&dot=.&comma=%2C"),
        ]);
    }

    #[test]
    fn expressions_of_rfc_6570_section_3_2() {
        check(&[
            ("{count}", "one,two,three"),
            ("{count*}", "one,two,three"),
            ("{/count}", "/one,two,three"),
            ("{/count*}", "/one/two/three"),
            ("{;count}", ";count=one,two,three"),
            ("{;count*}", ";count=one;count=two;count=three"),
            ("{?count}", "?count=one,two,three"),
            ("{?count*}", "?count=one&count=two&count=three"),
            ("{&count*}", "&count=one&count=two&count=three"),
            ("{half}", "50%25"),
            ("O{empty}X", "OX"),
            ("O{undef}X", "OX"),
            ("{x,y}", "1024,768"),
            ("?{x,empty}", "?1024,"),
            ("?{x,undef}", "?1024"),
            ("?{undef,y}", "?768"),
            ("{+half}", "50%25"),
            ("{base}index", "http%3A%2F%2Fexample.com%2Fhome%2Findex"),
            ("{+base}index", "http://example.com/home/index"),
            ("O{+empty}X", "OX"),
            ("O{+undef}X", "OX"),
            ("up{+path}{var}/here", "up/foo/barvalue/here"),
            ("{#half}", "#50%25"),
            ("foo{#empty}", "foo#"),
            ("foo{#undef}", "foo"),
            ("{.who}", ".fred"),
            ("{.who,who}", ".fred.fred"),
            ("{.half,who}", ".50%25.fred"),
            ("www{.dom*}", "www.example.com"),
            ("X{.empty}", "X."),
            ("X{.undef}", "X"),
            ("X{.empty_keys}", "X"),
            ("X{.empty_keys*}", "X"),
            ("{/who}", "/fred"),
            ("{/who,who}", "/fred/fred"),
            ("{/half,who}", "/50%25/fred"),
            ("{/who,dub}", "/fred/me%2Ftoo"),
            ("{/var,empty}", "/value/"),
            ("{/var,undef}", "/value"),
            ("{;who}", ";who=fred"),
            ("{;half}", ";half=50%25"),
            ("{;empty}", ";empty"),
            ("{;v,empty,who}", ";v=6;empty;who=fred"),
            ("{;v,bar,who}", ";v=6;who=fred"),
            ("{;x,y,undef}", ";x=1024;y=768"),
            ("{?who}", "?who=fred"),
            ("{?half}", "?half=50%25"),
            ("{?x,y,undef}", "?x=1024&y=768"),
            ("{&who}", "&who=fred"),
            ("{&half}", "&half=50%25"),
            ("{&x,y,undef}", "&x=1024&y=768"),
        ]);
    }

    #[test]
    fn corners_beyond_the_tables() {
        check(&[
            ("", ""),
            ("'{count}'", "'one,two,three'"),
            ("caf\u{e9}/%41", "caf%C3%A9/%41"),
            ("{greek:2}", "%CE%B1%CE%B2"),
            ("{triplet}", "a%2520b"),
            ("{+triplet}", "a%20b"),
            ("{+triplet:2}", "a%20"),
            ("{triplet:2}", "a%25"),
            ("x{?none,none*,empty_keys*}", "x"),
        ]);
    }

    #[test]
    fn a_prefix_of_a_list_or_map_is_refused() {
        for template in ["{keys:1}", "{+list:1}"] {
            let error = UriTemplate::parse(template).unwrap().expand(value).unwrap_err();
            assert!(template.contains(error.variable()));
            assert!(error.to_string().starts_with("expected `"));
        }
    }
}
