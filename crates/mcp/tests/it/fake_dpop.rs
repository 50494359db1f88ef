//! Checks DPoP proofs as RFC 9449 asks servers to, and requires nonces.

use aws_lc_rs::{
    digest::{SHA256, digest},
    signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL};
use serde_json::Value;
use std::collections::HashSet;
use url::Url;

/// The check of one server.
#[derive(Default)]
pub(crate) struct ProofCheck {
    /// Number of the nonce that proofs must contain, if they must.
    pub(crate) nonce: Option<usize>,
    /// Whether every accepted request replaces the nonce.
    pub(crate) rotates: bool,
    /// Whether to reject every proof.
    pub(crate) rejects: bool,
    /// Public keys of the accepted proofs.
    pub(crate) keys: HashSet<String>,
    pub(crate) used_ids: HashSet<String>,
}

/// A proof and the request that carries it.
pub(crate) struct SentProof<'a> {
    pub(crate) proof: Option<&'a str>,
    pub(crate) method: &'a str,
    pub(crate) url: Url,
    /// The token of a request to the MCP server.
    pub(crate) token: Option<&'a str>,
}

impl ProofCheck {
    pub(crate) fn with_nonce() -> ProofCheck {
        ProofCheck { nonce: Some(1), ..ProofCheck::default() }
    }

    /// Returns the current nonce.
    pub(crate) fn nonce(&self) -> Option<String> {
        self.nonce.map(|number| format!("n{number}"))
    }

    /// Checks a proof. Returns the OAuth error of a rejected one.
    pub(crate) fn check(&mut self, sent: &SentProof<'_>) -> Result<(), &'static str> {
        let (key, claims) = sent.proof.and_then(verify).ok_or("invalid_dpop_proof")?;
        let hash = sent.token.map(|token| BASE64URL.encode(digest(&SHA256, token.as_bytes())));
        let is_fresh = self.used_ids.insert(claims["jti"].as_str().unwrap_or_default().to_owned());
        let is_for_request = claims["htm"] == sent.method
            && claims["htu"] == sent.url.as_str()
            && claims.get("ath").and_then(Value::as_str) == hash.as_deref();
        if self.rejects || !is_fresh || !is_for_request {
            return Err("invalid_dpop_proof");
        }
        if claims.get("nonce").and_then(Value::as_str) != self.nonce().as_deref() && self.nonce.is_some() {
            return Err("use_dpop_nonce");
        }
        self.keys.insert(key);
        if self.rotates {
            self.nonce = self.nonce.map(|number| number + 1);
        }
        Ok(())
    }
}

/// Verifies the signature of a proof. Returns its public key and its claims.
fn verify(proof: &str) -> Option<(String, Value)> {
    let (signed, signature) = proof.rsplit_once('.')?;
    let (header, claims) = signed.split_once('.')?;
    let header: Value = serde_json::from_slice(&BASE64URL.decode(header).ok()?).ok()?;
    let jwk = &header["jwk"];
    let coordinate = |name: &str| BASE64URL.decode(jwk[name].as_str()?).ok();
    let point = [vec![4], coordinate("x")?, coordinate("y")?].concat();
    let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point);
    key.verify(signed.as_bytes(), &BASE64URL.decode(signature).ok()?).ok()?;
    let claims = serde_json::from_slice(&BASE64URL.decode(claims).ok()?).ok()?;
    (header["typ"] == "dpop+jwt" && jwk.get("d").is_none()).then(|| (jwk.to_string(), claims))
}
