//! Which features the facade has, for the loop that builds each of them alone.

use std::path::Path;

use crate::Verdict;
use crate::workspace::{self, Package};

const FACADE: &str = "bowline";

pub(crate) fn run(root: &Path) -> Result<Verdict, String> {
    for feature in of_the_facade(&workspace::packages(root)?)? {
        println!("{feature}");
    }
    Ok(Verdict::Clean)
}

fn of_the_facade(packages: &[Package]) -> Result<Vec<&str>, String> {
    let facade = packages.iter().find(|package| package.name == FACADE);
    let facade = facade.ok_or_else(|| format!("the workspace has no crate `{FACADE}`"))?;
    Ok(facade.features.iter().map(String::as_str).filter(|feature| *feature != "default").collect())
}

#[cfg(test)]
mod tests {
    use super::of_the_facade;
    use crate::workspace::Package;

    #[test]
    fn the_default_feature_is_not_a_choice() {
        let facade = Package {
            name: "bowline".to_owned(),
            manifest: "crates/bowline/Cargo.toml".to_owned(),
            dependencies: Vec::new(),
            features: ["client", "default", "server"].map(str::to_owned).to_vec(),
            is_published_library: true,
        };
        assert_eq!(of_the_facade(&[facade]).unwrap(), ["client", "server"]);
        assert_eq!(of_the_facade(&[]).unwrap_err(), "the workspace has no crate `bowline`");
    }
}
