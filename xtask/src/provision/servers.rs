//! The third-party MCP servers that a test starts, in the versions that the test's configuration names.

pub(super) const NPM: &[&str] = &[
    "@modelcontextprotocol/server-filesystem@2026.8.31",
    "@modelcontextprotocol/server-memory@2026.8.31",
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-sequential-thinking@2026.8.31",
    "@modelcontextprotocol/server-github@2025.4.8",
    "@modelcontextprotocol/server-postgres@0.6.2",
    "@modelcontextprotocol/server-slack@2025.4.25",
    "@modelcontextprotocol/server-brave-search@0.6.2",
    "@upstash/context7-mcp@4.1.1",
    "@playwright/mcp@0.0.83",
    "chrome-devtools-mcp@1.11.0",
    "@notionhq/notion-mcp-server@2.5.2",
    "tavily-mcp@0.2.22",
    "firecrawl-mcp@3.26.0",
    "@sentry/mcp-server@0.39.0",
    "figma-developer-mcp@0.13.2",
    "@negokaz/excel-mcp-server@0.12.0",
    "exa-mcp-server@3.4.1",
    "kubernetes-mcp-server@0.0.67",
    "n8n-mcp@2.87.0",
    "@azure/mcp@2.0.5",
    "mongodb-mcp-server@3.0.4",
];

/// Python servers. Words after a server's name are extra packages to install with it.
pub(super) const PYPI: &[&str] = &[
    "mcp-server-time==2026.10.19",
    "mcp-server-git==2026.10.19",
    "mcp-server-fetch==2026.10.24",
    "mcp-server-sqlite==2025.4.25 mcp<2",
    "mcp-server-sqlite==2025.4.25",
    "awslabs.aws-documentation-mcp-server==1.2.3",
    "duckduckgo-mcp-server==0.7.0",
    "markitdown-mcp==0.0.1a7",
    "mcp-obsidian==0.2.3",
    "elevenlabs-mcp==0.12.2",
];
