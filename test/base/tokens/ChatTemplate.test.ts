import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { chatMl, make, type ChatRenderOptions, type TemplateMessage } from "../../../src/base/tokens/ChatTemplate.ts"

const tokens = { bos_token: "<|begin_of_text|>", eos_token: "<|eot_id|>" }

/** A template that writes conversations as Llama 3's does. */
const llama3 = `{%- for message in messages %}
    {%- set head = '<|start_header_id|>' ~ message['role'] ~ '<|end_header_id|>\\n\\n' %}
    {{- (bos_token if loop.first else '') + head + (message['content'] | trim) + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
`

/** A template that writes conversations as Qwen 2.5's does: a system message of its own, and tools. */
const qwen = `{%- if messages[0].role == 'system' %}{%- set system = messages[0].content %}
{%- else %}{%- set system = 'You are Qwen, created by Alibaba Cloud. You are a helpful assistant.' %}{%- endif %}
{{- '<|im_start|>system\\n' + system }}
{%- if tools %}
    {{- '\\n\\n# Tools\\n\\n<tools>' }}
    {%- for tool in tools %}{{- '\\n' }}{{- tool | tojson }}{%- endfor %}
    {{- '\\n</tools>' }}
{%- endif %}
{{- '<|im_end|>\\n' }}
{%- for message in messages %}
    {%- if message.role == 'user' or (message.role == 'assistant' and not message.tool_calls) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
    {%- elif message.role == 'assistant' %}
        {{- '<|im_start|>assistant' }}
        {%- for call in message.tool_calls %}
            {{- '\\n<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' }}
            {{- call.function.arguments | tojson }}
            {{- '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == 'tool' %}
        {{- '<|im_start|>user\\n<tool_response>\\n' + message.content + '\\n</tool_response><|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}
`

const render = (source: string, options: ChatRenderOptions) =>
  Effect.flatMap(make({ default: source }, { path: "m/chat_template.jinja", tokens }), (template) =>
    template.render(options),
  )
const message = (source: string, options: ChatRenderOptions = { messages: [] }) =>
  Effect.map(Effect.flip(render(source, options)), ({ message }) => message)

const user: TemplateMessage = { role: "user", content: "Hi <there> & all, é\n" }
const system: TemplateMessage = { role: "system", content: "Be brief." }
const assistant: TemplateMessage = { role: "assistant", content: "  Hello.  " }
const weather = {
  type: "function",
  function: { name: "weather", description: "Today's", parameters: { type: "object", properties: {} } },
} as const

describe("a chat template", () => {
  it.effect("writes conversations as Llama 3 reads them", () =>
    Effect.gen(function* () {
      assert.strictEqual(
        yield* render(llama3, { messages: [system, user, assistant, user], addGenerationPrompt: true }),
        "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>" +
          "<|start_header_id|>user<|end_header_id|>\n\nHi <there> & all, é<|eot_id|>" +
          "<|start_header_id|>assistant<|end_header_id|>\n\nHello.<|eot_id|>" +
          "<|start_header_id|>user<|end_header_id|>\n\nHi <there> & all, é<|eot_id|>" +
          "<|start_header_id|>assistant<|end_header_id|>\n\n",
      )
    }),
  )

  it.effect("writes tools, calls and their results as Qwen 2.5 reads them", () =>
    Effect.gen(function* () {
      const call = {
        id: "1",
        type: "function",
        function: { name: "weather", arguments: '{"city":"Bern","day":1}' },
      } as const
      const messages: ReadonlyArray<TemplateMessage> = [
        user,
        { role: "assistant", content: null, tool_calls: [call] },
        { role: "tool", tool_call_id: "1", content: "sunny" },
      ]
      assert.strictEqual(
        yield* render(qwen, { messages, tools: [weather], addGenerationPrompt: true }),
        "<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant.\n\n# Tools\n\n<tools>\n" +
          '{"type": "function", "function": {"name": "weather", "description": "Today\'s", ' +
          '"parameters": {"type": "object", "properties": {}}}}\n</tools><|im_end|>\n' +
          "<|im_start|>user\nHi <there> & all, é\n<|im_end|>\n" +
          '<|im_start|>assistant\n<tool_call>\n{"name": "weather", "arguments": {"city": "Bern", "day": 1}}\n</tool_call><|im_end|>\n' +
          "<|im_start|>user\n<tool_response>\nsunny\n</tool_response><|im_end|>\n<|im_start|>assistant\n",
      )
    }),
  )

  it.effect("is ChatML where a model has none", () =>
    Effect.gen(function* () {
      assert.strictEqual(
        yield* render(chatMl, { messages: [system, user, assistant], addGenerationPrompt: true }),
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi <there> & all, é\n<|im_end|>\n" +
          "<|im_start|>assistant\n  Hello.  <|im_end|>\n<|im_start|>assistant\n",
      )
      const call = { function: { name: "weather", arguments: "{}" } }
      assert.strictEqual(
        yield* render(chatMl, {
          messages: [system, user, { role: "assistant", content: "", tool_calls: [call, call] }],
          tools: [weather],
        }),
        "<|im_start|>system\nBe brief.\n\nYou can call these functions:\n<tools>\n" +
          '{"type": "function", "function": {"name": "weather", "description": "Today\'s", ' +
          '"parameters": {"type": "object", "properties": {}}}}\n</tools>\n\n' +
          "To call one, write its name and arguments as JSON within <tool_call></tool_call> tags:\n" +
          '<tool_call>\n{"name": <name>, "arguments": <arguments>}\n</tool_call><|im_end|>\n' +
          "<|im_start|>user\nHi <there> & all, é\n<|im_end|>\n" +
          '<|im_start|>assistant\n<tool_call>\n{"name": "weather", "arguments": {}}\n</tool_call>\n' +
          '<tool_call>\n{"name": "weather", "arguments": {}}\n</tool_call><|im_end|>\n',
      )
    }),
  )

  it.effect("leaves the last message open if the model continues it, also where contents are trimmed", () =>
    Effect.gen(function* () {
      const messages = [user, { role: "assistant", content: "The answer is " }]
      const open = yield* render(chatMl, { messages, continueFinalMessage: true })
      assert.isTrue(open.endsWith("<|im_start|>assistant\nThe answer is "), open)
      const trimmed = yield* render(llama3, { messages, continueFinalMessage: true })
      assert.isTrue(trimmed.endsWith("<|end_header_id|>\n\nThe answer is"), trimmed)
      assert.strictEqual(
        yield* message(chatMl, { messages, continueFinalMessage: true, addGenerationPrompt: true }),
        "m/chat_template.jinja: addGenerationPrompt and continueFinalMessage exclude each other; set one of them",
      )
      assert.include(yield* message(chatMl, { messages: [], continueFinalMessage: true }), "expected a last message")
      assert.include(
        yield* message("nothing", { messages, continueFinalMessage: true }),
        "does not show the content of the last message",
      )
    }),
  )

  it.effect("that is wrong or refuses a conversation fails with its file", () =>
    Effect.gen(function* () {
      assert.match(yield* message("{% if %}"), /^m\/chat_template\.jinja: the template is not valid: /)
      assert.strictEqual(
        yield* message("{{ raise_exception('roles must alternate') }}"),
        "m/chat_template.jinja: roles must alternate",
      )
      assert.match(yield* message("{{ messages[0].content.unheard() }}", { messages: [user] }), /^m\/chat_template/)
      const named = make({ tool_use: "x" }, { path: "m/tokenizer_config.json" })
      const failure = Effect.flip(Effect.flatMap(named, (template) => template.render({ messages: [] })))
      assert.include((yield* failure).message, `expected a template named "default", found tool_use`)
    }),
  )

  it.effect("for tools is taken if tools are passed", () =>
    Effect.gen(function* () {
      const template = yield* make({ default: "plain", tool_use: "{{ tools | length }} tools" }, { path: "m" })
      assert.strictEqual(yield* template.render({ messages: [] }), "plain")
      assert.strictEqual(yield* template.render({ messages: [], tools: [weather] }), "1 tools")
      assert.strictEqual(yield* render("{{ tools is none }}", { messages: [], tools: [] }), "true")
    }),
  )

  it.effect("knows variables of the caller, and no clock", () =>
    Effect.gen(function* () {
      const dated = "{% if strftime_now is defined %}clock{% else %}{{ date_string }}{% endif %}"
      assert.strictEqual(
        yield* render(dated, { messages: [], variables: { date_string: "26 Jul 2024" } }),
        "26 Jul 2024",
      )
      const loops =
        "{% for i in range(3) %}{{ i }}{% endfor %}{% for i in range(5, 1, -2) %}{{ i }}{% endfor %}{{ None is none }}"
      assert.strictEqual(yield* render(loops, { messages: [] }), "01253true")
    }),
  )
})

const tooMuch = /the template computes too much: more than 3000000 expressions and items of lists/

describe("a template that would compute for minutes", () => {
  it.effect(
    "ends with what it does too often",
    () =>
      Effect.gen(function* () {
        const nested = "{% for a in range(9000) %}{% for b in range(9000) %}{{ b }}{% endfor %}{% endfor %}"
        assert.match(
          yield* message(nested),
          /^m\/chat_template.jinja: the template computes too much: more than 3000000 expressions and items of lists, where 64 /,
        )
        const empty = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
        const list = `{% set a = [1] %}${"{% set a = a + a %}".repeat(30)}{{ a | length }}`
        for (const template of [empty, list]) assert.match(yield* message(template), tooMuch)
        assert.match(
          yield* message("{% for a in range(1000000) %}{% endfor %}"),
          /range: expected at most 100000 numbers$/,
        )
        const doubled = `{% set a = 'aaaaaaaa' %}${"{% set a = a + a %}".repeat(27)}{{ a }}`
        assert.match(yield* message(doubled), /makes a text of more than 67108864 characters$/)
      }),
    { tags: "slow" },
  )

  it.effect(
    "does not hinder those that read a long conversation again and again",
    () =>
      Effect.gen(function* () {
        const source =
          "{% set ns = namespace(last=0) %}{% for message in messages[::-1] %}" +
          "{% if message.content is string and not message.content.startswith('<tool>') and ns.last == 0 %}" +
          "{% set ns.last = messages | length - loop.index %}{% endif %}{% endfor %}" +
          "{% for message in messages %}{% set content = message.content %}" +
          "{% if '</think>' in content %}{% set content = content.split('</think>')[-1].lstrip('\n') %}{% endif %}" +
          "{{ '<' + message.role + '>' + (content | trim | replace('a', 'ab')) + (messages[loop.index0 - 1].role) }}{% endfor %}"
        const content = `<think>${"thought ".repeat(50)}</think>${"an answer ".repeat(50)}`
        const messages = Array.from({ length: 5000 }, (_, at) => ({
          role: at % 2 === 0 ? "user" : "assistant",
          content,
        }))
        const text = yield* render(source, { messages })
        assert.strictEqual(text.length, 5000 * ("<>".length + 50 * 12 - 1) + 5000 * 13)
      }),
    { tags: "slow" },
  )

  it.effect("is refused by its length before it is read", () =>
    Effect.gen(function* () {
      const spaces = `{{ a }}${" ".repeat(200_000)}`
      assert.include(yield* message(spaces), "expected at most 1000 characters of white space in a row")
      assert.include(yield* message("x".repeat(300_000)), "expected at most 262144 characters, found 300000")
    }),
  )
})
