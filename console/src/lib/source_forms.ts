// What is asked for to register a server, as schemas: the same form as that of tools shows them.
import agentSchema from '../../../schema/agent.schema.json';
import type { Keywords } from './schema.ts';
import type { FieldProblem, NewSource as Body } from './types.ts';

const secrets = (description: string): Keywords => ({ type: 'object', title: 'Secrets', description, additionalProperties: { type: 'string', format: 'password' } });

export const FORMS: Record<string, { label: string; about: string; schema: Keywords; body: (value: any) => Body }> = {
  remote: {
    label: 'Remote server', about: 'A server that runs elsewhere and speaks streamable HTTP.',
    schema: {
      type: 'object', required: ['name', 'mcp_server_url'],
      properties: {
        name: { type: 'string', title: 'Name', minLength: 1, description: 'Its tools are called name__tool.' },
        mcp_server_url: { type: 'string', title: 'Address', format: 'uri', description: 'Without a path it gets /mcp.', examples: ['https://mcp.example.com'] },
        mcp_env_vars: secrets('Sent as headers: Authorization as it is, API_KEY as X-API-Key, MCP_HEADER_X_Y as X-Y. Kept encrypted and never shown again.'),
      },
    },
    body: (value) => ({ ...value, source_type: 'mcp', mcp_transport_type: 'streamable_http' }),
  },
  plugin: {
    label: 'Plugin folder', about: 'A folder on the gateway\'s machine with a plugin.json or a server.json.',
    schema: {
      type: 'object', required: ['name', 'mcp_plugin_dir'],
      properties: {
        name: { type: 'string', title: 'Name', minLength: 1 },
        mcp_plugin_dir: { type: 'string', title: 'Folder', minLength: 1, description: 'An absolute path inside one of the plugin_roots of wharf.toml.', examples: ['/opt/mcp-plugins/github'] },
        mcp_runtime_hint: { enum: ['uvx', 'npx', 'python', 'node', 'docker'], title: 'Runtime', description: 'Not sent: the first package of the manifest that can run.' },
        mcp_lifecycle_mode: { enum: ['transient', 'singleton'], title: 'Lifecycle', description: 'transient starts it for each call, singleton keeps it.', default: 'transient' },
        mcp_transport_type: { enum: ['stdio', 'sse', 'streamable_http'], title: 'Transport', description: 'Not sent: what the manifest says.' },
        mcp_args: { type: 'array', title: 'Arguments', items: { type: 'string' } },
        mcp_env_vars: secrets('For the variables of the manifest. Kept encrypted and never shown again.'),
      },
    },
    body: (value) => ({ ...value, source_type: 'mcp' }),
  },
  entry: {
    label: 'Entry of agent.yaml', about: 'Everything that `tools:` of agent.yaml can say.',
    schema: (agentSchema.properties.tools as Keywords).items as Keywords,
    body: (value) => value,
  },
};

/** Finds the field that a problem speaks of: by its path, or by the first of the form's names that its message quotes. */
export function atFields(problems: FieldProblem[], schema: Keywords): Map<string, string> {
  const names = Object.keys(schema.properties ?? {});
  return new Map(problems.map((it) => {
    const quoted = [...it.message.matchAll(/`([^`]+)`|'([^']+)'/g)].map((match) => match[1] ?? match[2]!);
    const name = quoted.find((each) => names.includes(each)) ?? quoted.map((each) => names.find((known) => each.startsWith(`${known}.`) || known.endsWith(`_${each}`))).find(Boolean);
    return [it.path ?? (name ? `/${name}` : ''), [it.message, it.hint].filter(Boolean).join('; ')];
  }));
}
