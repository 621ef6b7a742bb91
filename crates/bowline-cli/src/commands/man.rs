//! `bowline man`: manual pages, generated from the command-line definition.

use crate::{
    context::Context,
    failure::{Code, Failure},
};
use clap::{Args, CommandFactory};
use clap_mangen::Man;
use std::{fs, path::PathBuf};

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Write the pages of all commands into this directory instead of printing the main page
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    let command = super::Arguments::command();
    let Some(folder) = &arguments.folder else {
        let mut page = Vec::new();
        Man::new(command).render(&mut page)?;
        return context.screen.raw(&page);
    };
    let written = fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(command, folder));
    written.map_err(|error| {
        Failure::new(Code::Failed, format!("cannot write manual pages to `{}`: {error}", folder.display()))
    })
}
