//! Asks docker for the digest of an image.

use crate::launch_program::find_program_of;
use serde_json::Value;
use std::{process::Stdio, time::Duration};
use tokio::{process::Command, time::timeout};
use wharf_config::{Launch, LockedPackage, PackageKind};

/// Time limit for docker to answer.
const INSPECT_TIMEOUT: Duration = Duration::from_secs(20);

/// Registry of images that were built on this machine, as podman names it.
const LOCAL_REGISTRY: &str = "localhost/";

/// Returns the image with its digest in the registry, or with its id if only this machine knows it. `None` if docker does
/// not know the image.
pub(super) async fn find(launch: &Launch, spec: &str, image: &str) -> Option<LockedPackage> {
    let mut command = Command::new(find_program_of(launch).ok()?);
    command.args(["image", "inspect", image]).env_clear().kill_on_drop(true);
    command.envs(launch.env.0.iter().map(|(name, it)| (name, it.value.expose())));
    command.stdin(Stdio::null()).stderr(Stdio::null());
    let output = timeout(INSPECT_TIMEOUT, command.output()).await.ok()?.ok()?;
    let images: Value = serde_json::from_slice(&output.stdout).ok()?;
    read_image(spec, &images[0])
}

fn read_image(spec: &str, image: &Value) -> Option<LockedPackage> {
    let digests = image["RepoDigests"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let pushed = digests.into_iter().find(|it| !it.starts_with(LOCAL_REGISTRY));
    let digest = pushed.and_then(|it| it.split_once('@')).map(|(_, digest)| digest.to_owned());
    let is_local = digest.is_none();
    let local_id = || {
        let id = image["Id"].as_str()?;
        Some(if id.starts_with("sha256:") { id.to_owned() } else { format!("sha256:{id}") })
    };
    let mut package = LockedPackage::new(PackageKind::Docker, spec);
    package.integrity.insert(String::new(), digest.or_else(local_id)?);
    package.is_local = is_local;
    Some(package)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn digest_of_the_registry_is_preferred_to_the_local_id() {
        let rows = [
            (json!({ "Id": "sha256:1", "RepoDigests": ["ghcr.io/a/b@sha256:2"] }), Some(("sha256:2", false))),
            (json!({ "Id": "1", "RepoDigests": ["localhost/b@sha256:2"] }), Some(("sha256:1", true))),
            (json!({ "Id": "sha256:1", "RepoDigests": [] }), Some(("sha256:1", true))),
            (json!({}), None),
        ];
        for (image, expected) in rows {
            let found = read_image("a/b:1", &image);
            let found = found.as_ref().map(|it| (it.integrity[""].as_str(), it.is_local));
            assert_eq!(found, expected, "{image}");
        }
    }
}
