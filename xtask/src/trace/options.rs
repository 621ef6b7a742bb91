//! The options of `cargo xtask trace`.

use super::catalog::Catalog;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    /// Compare `spec/TRACE.md` instead of writing it.
    pub(super) check: bool,
    /// The least percentage of mandatory rows to be proven.
    pub(super) require: Option<usize>,
    /// The areas to look at; all if there are none.
    areas: Vec<String>,
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
                "--require" => {
                    let text = value()?;
                    let percent = text.parse().ok().filter(|percent| *percent <= 100);
                    let percent = percent
                        .ok_or_else(|| format!("expected a percentage behind `--require`, got `{text}`"))?;
                    options.require = Some(percent);
                }
                "--areas" => options.areas = value()?.split(',').map(|area| area.trim().to_owned()).collect(),
                other => return Err(format!("`trace` has no option `{other}`")),
            }
        }
        Ok(options)
    }

    /// The areas must be in the catalog, lest a misspelled one hides its rows.
    pub(super) fn check_areas(&self, catalog: &Catalog) -> Result<(), String> {
        let known = catalog.areas();
        let stranger = self.areas.iter().find(|area| !known.contains(&area.as_str()));
        stranger
            .map_or(Ok(()), |area| Err(format!("`--areas` names `{area}`; there are {}", known.join(", "))))
    }

    pub(super) fn looks_at(&self, area: &str) -> bool {
        self.areas.is_empty() || self.areas.iter().any(|named| named == area)
    }

    /// How the report calls the areas looked at.
    pub(super) fn scope(&self) -> String {
        match self.areas.len() {
            0 => "all areas".to_owned(),
            1 => "1 area".to_owned(),
            many => format!("{many} areas"),
        }
    }
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
        let options = parse(&["--check", "--require", "95", "--areas", "base,tools"]).unwrap();
        assert!(options.check);
        assert_eq!(options.require, Some(95));
        assert!(options.looks_at("tools") && !options.looks_at("meta"));
        assert!(Options::default().looks_at("meta"));
    }

    #[test]
    fn mistakes_are_told() {
        assert_eq!(parse(&["--require"]).unwrap_err(), "expected a value behind `--require`");
        assert_eq!(
            parse(&["--require", "101"]).unwrap_err(),
            "expected a percentage behind `--require`, got `101`"
        );
        assert_eq!(parse(&["--all"]).unwrap_err(), "`trace` has no option `--all`");
        let catalog = catalog(&[("A-1", "MUST", "a"), ("B-1", "MUST", "b")]);
        let error = parse(&["--areas", "a,c"]).unwrap().check_areas(&catalog).unwrap_err();
        assert_eq!(error, "`--areas` names `c`; there are a, b");
    }
}
