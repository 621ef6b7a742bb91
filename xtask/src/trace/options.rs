//! The options of `cargo xtask trace`.

use super::catalog::Catalog;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    /// Compare `spec/TRACE.md` and the figures of `README.md` instead of writing them.
    pub(super) check: bool,
    /// The least number of mandatory rows, of all areas, to be proven.
    pub(super) min_proven: Option<usize>,
    /// The areas that are built: their mandatory rows are proven, waived or listed in `spec/open.tsv`.
    pub(super) built: Vec<String>,
    /// How many proven rows to draw at random.
    pub(super) sample: Option<usize>,
    /// What the draw starts from.
    pub(super) seed: u64,
}

impl Options {
    pub(super) fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut options = Self::default();
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let mut value =
                || arguments.next().ok_or_else(|| format!("expected a value behind `{argument}`"));
            match argument.as_str() {
                "--check" => options.check = true,
                "--min-proven" => options.min_proven = Some(number(argument, value()?)?),
                "--built" => options.built = value()?.split(',').map(|area| area.trim().to_owned()).collect(),
                "--sample" => options.sample = Some(number(argument, value()?)?),
                "--seed" => options.seed = number(argument, value()?)?,
                other => return Err(format!("`trace` has no option `{other}`")),
            }
        }
        Ok(options)
    }

    /// Checks that the areas are in the catalog: a misspelled one would hide its rows.
    pub(super) fn check_areas(&self, catalog: &Catalog) -> Result<(), String> {
        let known = catalog.areas();
        let stranger = self.built.iter().find(|area| !known.contains(&area.as_str()));
        stranger
            .map_or(Ok(()), |area| Err(format!("`--built` names `{area}`; there are {}", known.join(", "))))
    }

    /// Returns whether the list of unproven rows has this area: all areas unless some are named.
    pub(super) fn lists(&self, area: &str) -> bool {
        self.built.is_empty() || self.is_built(area)
    }

    pub(super) fn is_built(&self, area: &str) -> bool {
        self.built.iter().any(|named| named == area)
    }
}

fn number<T: std::str::FromStr>(option: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("expected a number behind `{option}`, got `{text}`"))
}

#[cfg(test)]
mod tests {
    use super::super::catalog::tests::catalog;
    use super::Options;

    fn parse(arguments: &[&str]) -> Result<Options, String> {
        Options::parse(&arguments.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn options_are_read() {
        assert_eq!(parse(&[]).unwrap(), Options::default());
        let options = parse(&["--check", "--min-proven", "95", "--built", "base,tools"]).unwrap();
        assert!(options.check);
        assert_eq!(options.min_proven, Some(95));
        assert!(options.is_built("tools") && !options.is_built("meta"));
        assert!(Options::default().lists("meta") && !Options::default().is_built("meta"));
        let options = parse(&["--sample", "60", "--seed", "12"]).unwrap();
        assert_eq!((options.sample, options.seed), (Some(60), 12));
    }

    #[test]
    fn mistakes_are_reported() {
        assert_eq!(parse(&["--sample"]).unwrap_err(), "expected a value behind `--sample`");
        assert_eq!(
            parse(&["--min-proven", "all"]).unwrap_err(),
            "expected a number behind `--min-proven`, got `all`"
        );
        assert_eq!(parse(&["--all"]).unwrap_err(), "`trace` has no option `--all`");
        let catalog = catalog(&[("A-1", "MUST", "a"), ("B-1", "MUST", "b")]);
        let error = parse(&["--built", "a,c"]).unwrap().check_areas(&catalog).unwrap_err();
        assert_eq!(error, "`--built` names `c`; there are a, b");
    }
}
