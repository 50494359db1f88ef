//! Writes the model into the example agent file.

use wharf_agent::key_variable;
use wharf_config::Provider;

/// First and last line of the commented model in the example.
const FIRST_LINE: &str = "# model:\n";
const LAST_LINE: &str = "#   inline: You keep my to-do list short.\n";

/// Returns the example agent file, with this model in place of the commented one.
pub(super) fn example_with_model(example: &str, named: Option<&str>) -> Result<String, String> {
    let Some(named) = named else { return Ok(example.to_owned()) };
    let parsed = named.split_once('/').and_then(|(provider, name)| Some((Provider::parse(provider)?, name)));
    let is_plain = |name: &str| name.chars().all(|it| it.is_ascii_alphanumeric() || "-_.:/@".contains(it));
    let Some((provider, name)) = parsed.filter(|(_, name)| !name.is_empty() && is_plain(name)) else {
        let providers = Provider::KEYWORDS.join(", ");
        return Err(format!("error: `--model` must be PROVIDER/NAME\nhelp: the providers are {providers}\n"));
    };
    if provider == Provider::AzureOpenAi {
        return Err(
            "error: azure_openai needs an `endpoint` too\nhelp: write the model into agent.yaml\n".to_owned()
        );
    }
    let comment = match key_variable(provider) {
        Some(variable) => format!("  # the key is in the variable {variable}"),
        None => String::new(),
    };
    let section = format!(
        "model:\n  provider: {}{comment}\n  name: \"{name}\"\ninstructions:\n  inline: You keep my to-do list short.\n",
        provider.as_str()
    );
    let commented = example.find(FIRST_LINE).zip(example.find(LAST_LINE));
    let (begin, end) = commented.unwrap_or((example.len(), example.len()));
    Ok(format!("{}{section}{}", &example[..begin], &example[(end + LAST_LINE.len()).min(example.len())..]))
}
