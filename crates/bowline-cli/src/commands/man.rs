//! `bowline man`: the manual, made from the same words as the help.

use crate::{
    arguments::Arguments as Line,
    context::Context,
    failure::{Code, Failure},
};
use clap::{Args, CommandFactory};
use clap_mangen::Man;
use std::{fs, path::PathBuf};

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Write a page for each command into this folder, instead of the first one to standard output
    #[arg(value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    let command = Line::command();
    let Some(folder) = &arguments.folder else {
        let mut page = Vec::new();
        Man::new(command).render(&mut page)?;
        return context.screen.raw(&page);
    };
    let written = fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(command, folder));
    written.map_err(|error| {
        Failure::new(Code::Failed, format!("cannot write pages into `{}`: {error}", folder.display()))
    })
}
