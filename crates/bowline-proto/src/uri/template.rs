//! Parses URI templates.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use super::matching::Pattern;
use super::percent::{push_reserved, starts_with_triplet};

const MAX_LENGTH: usize = 64 * 1024;
const MAX_EXPRESSIONS: usize = 256;
const MAX_VARIABLES: usize = 256;

/// A URI template (RFC 6570, all four levels).
///
/// A template has at most 64 KiB, 256 expressions and 256 variables.
///
/// ```
/// use bowline_proto::uri::{UriTemplate, Value};
///
/// let template = UriTemplate::parse("note://{user}/{+path}{?lang}")?;
/// let uri = template.expand(|name| match name {
///     "user" => Some(Value::from("ann")),
///     "path" => Some(Value::from("a/b c")),
///     _ => None,
/// })?;
/// assert_eq!(uri, "note://ann/a/b%20c");
///
/// let found = template.match_uri("note://ann/a/b%20c?lang=de").unwrap();
/// assert_eq!(found[1], ("path".to_owned(), "a/b c".to_owned()));
/// assert_eq!(found[2], ("lang".to_owned(), "de".to_owned()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct UriTemplate {
    source: String,
    parts: Vec<Part>,
    variables: Vec<String>,
    pattern: Pattern,
}

#[derive(Debug, Clone)]
pub(super) enum Part {
    /// Text as it stands in an expansion, that is with non-URI characters encoded.
    Literal(String),
    Expression(Expression),
}

#[derive(Debug, Clone)]
pub(super) struct Expression {
    pub(super) operator: Operator,
    pub(super) variables: Vec<Variable>,
}

#[derive(Debug, Clone)]
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) modifier: Modifier,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Modifier {
    Whole,
    /// Only so many characters of the value.
    Prefix(usize),
    /// Each member of a list or map on its own.
    Explode,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    /// `{x}`
    Simple,
    /// `{+x}`
    Reserved,
    /// `{#x}`
    Fragment,
    /// `{.x}`
    Label,
    /// `{/x}`
    Segment,
    /// `{;x}`
    Parameter,
    /// `{?x}`
    Query,
    /// `{&x}`
    Continuation,
}

impl UriTemplate {
    /// Parses a template. The error states the column and the problem.
    pub fn parse(source: &str) -> Result<Self, TemplateError> {
        if source.len() > MAX_LENGTH {
            return Err(TemplateError::new(source, MAX_LENGTH, Problem::TooLong));
        }
        let parts = Parser { source, offset: 0, expressions: 0, variables: 0 }.parts()?;

        let mut variables: Vec<String> = Vec::new();
        for part in &parts {
            let Part::Expression(expression) = part else { continue };
            for variable in &expression.variables {
                if !variables.contains(&variable.name) {
                    variables.push(variable.name.clone());
                }
            }
        }
        let pattern = Pattern::new(&parts);
        Ok(Self { source: source.to_owned(), parts, variables, pattern })
    }

    /// Returns the names of the variables, each once, in order of first occurrence.
    pub fn variables(&self) -> impl ExactSizeIterator<Item = &str> {
        self.variables.iter().map(String::as_str)
    }

    /// Returns the template as written.
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// Finds the values with which this template gives `uri`, decoded, in template order.
    ///
    /// - `{x}` and `{x:3}` hold no `/`, `?` or `#`; `{x*}` may hold `/`; `{+x}` and `{#x}` may hold anything.
    ///   Such a value is never empty.
    /// - `{/x}`, `{.x}` and `{#x}` may be missing, `{?x}`, `{&x}` and `{;x}` too and in any order: a variable
    ///   without a value is left out of the answer. A parameter that the template does not name, or one given
    ///   twice, is no match. `{?x*}` may repeat and then appears as often in the answer.
    /// - Where several readings are possible, the one in which nothing is missing wins, and then each variable
    ///   in turn takes as much as it can: `{name}.{ext}` finds `a.b` and `c` in `a.b.c`.
    /// - A variable mentioned twice has the same value in both places; the reading is chosen before that is checked.
    ///
    /// A URI over 1 MiB matches nothing. Time and memory grow with the length of the URI times the number of
    /// variables, whatever the URI. Values are decoded: `{x}` finds `a/b` in `a%2Fb`, so a value is not a safe
    /// file name.
    pub fn match_uri(&self, uri: &str) -> Option<Vec<(String, String)>> {
        self.pattern.matches(uri)
    }

    pub(super) fn parts(&self) -> &[Part] {
        &self.parts
    }
}

impl fmt::Debug for UriTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("UriTemplate").field(&self.source).finish()
    }
}

impl fmt::Display for UriTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

impl PartialEq for UriTemplate {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Eq for UriTemplate {}

impl Hash for UriTemplate {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.source.hash(state);
    }
}

impl FromStr for UriTemplate {
    type Err = TemplateError;

    fn from_str(source: &str) -> Result<Self, TemplateError> {
        Self::parse(source)
    }
}

/// Why a text is not a URI template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateError {
    column: usize,
    problem: Problem,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Problem {
    TooLong,
    TooManyExpressions,
    TooManyVariables,
    Unclosed,
    Unopened,
    Literal(char),
    Percent,
    ReservedOperator(char),
    Name(Option<char>),
    Prefix,
    AfterVariable(Option<char>),
}

impl TemplateError {
    fn new(source: &str, offset: usize, problem: Problem) -> Self {
        let column = 1 + source.char_indices().take_while(|(index, _)| *index < offset).count();
        Self { column, problem }
    }

    /// Returns the column of the problem, counted in characters from 1.
    pub fn column(&self) -> usize {
        self.column
    }
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "URI template, column {}: ", self.column)?;
        let got = |f: &mut fmt::Formatter<'_>, found: Option<char>| match found {
            Some(found) => write!(f, ", got {found:?}"),
            None => f.write_str(", got the end"),
        };
        match self.problem {
            Problem::TooLong => write!(f, "expected at most {MAX_LENGTH} bytes"),
            Problem::TooManyExpressions => write!(f, "expected at most {MAX_EXPRESSIONS} expressions"),
            Problem::TooManyVariables => write!(f, "expected at most {MAX_VARIABLES} variables"),
            Problem::Unclosed => f.write_str("unclosed `{`"),
            Problem::Unopened => f.write_str("unmatched `}`"),
            Problem::Literal(found) => write!(f, "{found:?} is not allowed in a URI"),
            Problem::Percent => f.write_str("expected two hexadecimal digits after `%`"),
            Problem::ReservedOperator(found) => {
                write!(f, "the operator {found:?} is reserved by RFC 6570 and cannot be used")
            }
            Problem::Name(found) => {
                f.write_str("expected a variable name")?;
                got(f, found)
            }
            Problem::Prefix => f.write_str("expected a prefix length from 1 to 9999"),
            Problem::AfterVariable(found) => {
                f.write_str("expected `,` or `}` after a variable")?;
                got(f, found)
            }
        }
    }
}

impl std::error::Error for TemplateError {}

struct Parser<'a> {
    source: &'a str,
    offset: usize,
    expressions: usize,
    variables: usize,
}

impl<'a> Parser<'a> {
    fn parts(mut self) -> Result<Vec<Part>, TemplateError> {
        let mut parts = Vec::new();
        while let Some(next) = self.peek() {
            if next == '{' {
                parts.push(Part::Expression(self.expression()?));
            } else {
                parts.push(Part::Literal(self.literal()?));
            }
        }
        Ok(parts)
    }

    fn literal(&mut self) -> Result<String, TemplateError> {
        let start = self.offset;
        while let Some(next) = self.peek() {
            match next {
                '{' => break,
                '}' => return Err(self.error(Problem::Unopened)),
                '%' if starts_with_triplet(self.rest().as_bytes()) => {}
                '%' => return Err(self.error(Problem::Percent)),
                '\0'..=' ' | '"' | '<' | '>' | '\\' | '^' | '`' | '|' | '\u{7f}'..='\u{9f}' => {
                    return Err(self.error(Problem::Literal(next)));
                }
                _ => {}
            }
            self.offset += next.len_utf8();
        }
        let mut literal = String::new();
        push_reserved(&mut literal, self.source.get(start..self.offset).unwrap_or_default());
        Ok(literal)
    }

    fn expression(&mut self) -> Result<Expression, TemplateError> {
        let start = self.offset;
        self.expressions += 1;
        if self.expressions > MAX_EXPRESSIONS {
            return Err(self.error(Problem::TooManyExpressions));
        }
        self.offset += 1;
        if !self.rest().contains('}') {
            return Err(TemplateError::new(self.source, start, Problem::Unclosed));
        }
        let operator = self.operator()?;
        let mut variables = Vec::new();
        loop {
            variables.push(self.variable()?);
            match self.peek() {
                Some(',') => self.offset += 1,
                Some('}') => break,
                other => return Err(self.error(Problem::AfterVariable(other))),
            }
        }
        self.offset += 1;
        Ok(Expression { operator, variables })
    }

    fn operator(&mut self) -> Result<Operator, TemplateError> {
        let operator = match self.peek() {
            Some('+') => Operator::Reserved,
            Some('#') => Operator::Fragment,
            Some('.') => Operator::Label,
            Some('/') => Operator::Segment,
            Some(';') => Operator::Parameter,
            Some('?') => Operator::Query,
            Some('&') => Operator::Continuation,
            Some(reserved @ ('=' | ',' | '!' | '@' | '|')) => {
                return Err(self.error(Problem::ReservedOperator(reserved)));
            }
            _ => return Ok(Operator::Simple),
        };
        self.offset += 1;
        Ok(operator)
    }

    fn variable(&mut self) -> Result<Variable, TemplateError> {
        self.variables += 1;
        if self.variables > MAX_VARIABLES {
            return Err(self.error(Problem::TooManyVariables));
        }
        let start = self.offset;
        self.name()?;
        while self.peek() == Some('.') {
            self.offset += 1;
            self.name()?;
        }
        let name = self.source.get(start..self.offset).unwrap_or_default().to_owned();
        let modifier = match self.peek() {
            Some('*') => {
                self.offset += 1;
                Modifier::Explode
            }
            Some(':') => {
                self.offset += 1;
                Modifier::Prefix(self.prefix()?)
            }
            _ => Modifier::Whole,
        };
        Ok(Variable { name, modifier })
    }

    /// One or more characters of a name, up to the next dot.
    fn name(&mut self) -> Result<(), TemplateError> {
        let start = self.offset;
        loop {
            match self.peek() {
                Some(next) if next.is_ascii_alphanumeric() || next == '_' => self.offset += 1,
                Some('%') if starts_with_triplet(self.rest().as_bytes()) => self.offset += 3,
                Some('%') => return Err(self.error(Problem::Percent)),
                other if self.offset == start => return Err(self.error(Problem::Name(other))),
                _ => return Ok(()),
            }
        }
    }

    fn prefix(&mut self) -> Result<usize, TemplateError> {
        let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        let text = self.rest().get(..digits).unwrap_or_default();
        match text.parse() {
            Ok(length @ 1..=9999) if !text.starts_with('0') => {
                self.offset += digits;
                Ok(length)
            }
            _ => Err(self.error(Problem::Prefix)),
        }
    }

    fn rest(&self) -> &'a str {
        self.source.get(self.offset..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn error(&self, problem: Problem) -> TemplateError {
        TemplateError::new(self.source, self.offset, problem)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    fn check(source: &str, expected: &Expect) {
        expected.assert_eq(&UriTemplate::parse(source).unwrap_err().to_string());
    }

    #[test]
    fn errors_name_the_column_and_the_problem() {
        check("a{b", &expect!["URI template, column 2: unclosed `{`"]);
        check("/id*}", &expect!["URI template, column 5: unmatched `}`"]);
        check("é {b}", &expect!["URI template, column 2: ' ' is not allowed in a URI"]);
        check("a%2x", &expect!["URI template, column 2: expected two hexadecimal digits after `%`"]);
        check(
            "{!x}",
            &expect!["URI template, column 2: the operator '!' is reserved by RFC 6570 and cannot be used"],
        );
        check("{}", &expect!["URI template, column 2: expected a variable name, got '}'"]);
        check("{a,}", &expect!["URI template, column 4: expected a variable name, got '}'"]);
        check("{a:0}", &expect!["URI template, column 4: expected a prefix length from 1 to 9999"]);
        check("{a b}", &expect!["URI template, column 3: expected `,` or `}` after a variable, got ' '"]);
    }

    #[test]
    fn malformed_templates_are_refused() {
        for source in [
            "{/id*",
            "{/?id}",
            "{var:prefix}",
            "{hello:2*}",
            "{hello*:2}",
            "{??hello}",
            "{with space}",
            "{ leading}",
            "{trailing }",
            "{=path}",
            "{$var}",
            "{|var*}",
            "{*keys?}",
            "{?empty=default,var}",
            "{-prefix|/-/|var}",
            "{example:color?}",
            "{#hello+}",
            "{~thing}",
            "{default-graph-uri}",
            "{?query){&rest*}",
            "{?x, y}",
            "{var:01}",
            "{var:10000}",
            "{var:}",
            "{x.}",
            "{.}",
            "{x..y}",
            "{%2x}",
            "{é}",
            "{{x}}",
            "a<b",
            "a\\b",
            "a\nb",
            "a\u{85}b",
        ] {
            assert!(UriTemplate::parse(source).is_err(), "{source}");
        }
    }

    #[test]
    fn variables_are_listed_once_in_order() {
        let template: UriTemplate = "x:{b}/{a,b:3}{?c.d*,%41,_1}".parse().unwrap();
        assert_eq!(template.variables().collect::<Vec<_>>(), ["b", "a", "c.d", "%41", "_1"]);
        assert_eq!(template.to_string(), template.as_str());
        assert_eq!(format!("{template:?}"), r#"UriTemplate("x:{b}/{a,b:3}{?c.d*,%41,_1}")"#);
    }

    #[test]
    fn length_and_count_are_bounded() {
        let check = |source: String, fits: bool| assert_eq!(UriTemplate::parse(&source).is_ok(), fits);
        check("a".repeat(MAX_LENGTH), true);
        check("a".repeat(MAX_LENGTH + 1), false);
        check("{a}".repeat(MAX_EXPRESSIONS), true);
        check("{a}".repeat(MAX_EXPRESSIONS + 1), false);
        check(format!("{{?{}a}}", "a,".repeat(MAX_VARIABLES - 1)), true);
        check(format!("{{?{}a}}", "a,".repeat(MAX_VARIABLES)), false);
    }

    proptest! {
        #[test]
        fn any_text_parses_or_fails_without_panic(source in "([{}a:*,.%?&;/+#0-9é ]|.){0,30}") {
            match UriTemplate::parse(&source) {
                Ok(template) => prop_assert_eq!(template.as_str(), source),
                Err(error) => prop_assert!(error.column() <= source.chars().count() + 1),
            }
        }
    }
}
