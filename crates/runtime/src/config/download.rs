//! The package or image that a launcher downloads, and the arguments that make the launcher download it and run nothing.
//!
//! The server's own arguments are never part of these: nothing of the server may run before it is connected to.

use crate::text::Text;

/// A package or image that has to be on this machine before its server can run.
#[derive(Clone, Debug, PartialEq)]
pub enum Download {
    /// Packages of npm, which `npx` keeps in one folder of its cache for each set of them.
    Npm {
        /// The packages as npx is given them; the first one contains the server.
        packages: Vec<Text>,
        /// The arguments of `npx`.
        args: Vec<Text>,
        /// Whether `npx` also takes the first package from where `npm install --global` puts packages.
        or_global: bool,
    },
    /// A package of PyPI.
    PyPi {
        /// The package, with its version as uvx is given it.
        package: Text,
        /// The arguments of `uvx`.
        args: Vec<Text>,
    },
    /// A container image.
    Image {
        /// The image, with its tag.
        image: Text,
        /// The value of `--platform`.
        platform: Option<Text>,
    },
}

impl Download {
    /// What is downloaded, in the form that may be shown.
    pub fn shown(&self) -> String {
        match self {
            Download::Npm { packages, .. } => {
                packages.iter().map(|it| it.shown()).collect::<Vec<_>>().join(", ")
            }
            Download::PyPi { package, .. } => package.shown().to_owned(),
            Download::Image { image, .. } => image.shown().to_owned(),
        }
    }
}
