//! Describes the package or image that a launcher downloads, and the arguments that make the launcher download it
//! without running anything.
//!
//! These never include the server's own arguments, because no code of the server may run before wharf connects to it.

use crate::masked_string::MaskedString;

/// A package or image that must be on this machine before its server can run.
#[derive(Clone, Debug, PartialEq)]
pub enum Download {
    /// npm packages. npx keeps each set of packages in one folder of its cache.
    Npm {
        /// Packages as passed to npx. The first one contains the server.
        packages: Vec<MaskedString>,
        /// The arguments of `npx`.
        args: Vec<MaskedString>,
        /// Whether `npx` also accepts the first package from the folder of `npm install --global`.
        or_global: bool,
    },
    /// A PyPI package.
    PyPi {
        /// Package with its version, as passed to uvx.
        package: MaskedString,
        /// The arguments of `uvx`.
        args: Vec<MaskedString>,
    },
    /// A container image.
    Image {
        /// Image with its tag.
        image: MaskedString,
        /// Value of `--platform`.
        platform: Option<MaskedString>,
    },
}

impl Download {
    /// Returns the name of the package or image in the form that may be shown.
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
