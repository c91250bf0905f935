/** Completion scripts for bash, zsh and fish, generated from the commands, options and choices of a program. */
import type { Command, Option } from 'commander';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;

type Word = { readonly word: string; readonly description: string };
type WordOption = Word & {
  readonly takesValue: boolean;
  readonly isFile: boolean;
  readonly choices: readonly string[];
};
/** What may follow the words of `path`, for example of `ops gate record`. */
type Position = {
  readonly path: string;
  readonly commands: readonly Word[];
  readonly options: readonly WordOption[];
  /** The choices of each argument, in order. */
  readonly places: readonly (readonly string[])[];
};

/** @param name the word that the user types. The script defines a function of this name if there is no such command. */
export function completionScript(shell: (typeof SHELLS)[number], name: string, program: Command): string {
  const positions = listPositions(program, name);
  return { bash: bashScript, zsh: zshScript, fish: fishScript }[shell](name, positions);
}

function listPositions(command: Command, path: string): Position[] {
  const own: Position = {
    path,
    commands: command.commands.map((child) => ({ word: child.name(), description: child.description() })),
    options: command.createHelp().visibleOptions(command).map(optionOf),
    places: command.registeredArguments.map(({ argChoices }) => argChoices ?? []),
  };
  return [own, ...command.commands.flatMap((child) => listPositions(child, `${path} ${child.name()}`))];
}

const optionOf = ({ long, flags, description, required, argChoices }: Option): WordOption => ({
  word: long ?? flags,
  description,
  takesValue: required,
  isFile: flags.endsWith('<file>'),
  choices: argChoices ?? [],
});

/** A text in the single quotes of bash, zsh and fish. */
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** The patterns of all commands below the root, such as `'ops gate' 'ops gate list'`. */
const commandPatterns = (positions: readonly Position[]): string[] =>
  positions.slice(1).map(({ path }) => quoted(path));

/** All options that take a value, each once. */
const valueOptions = (positions: readonly Position[]): string[] => {
  const options = positions.flatMap((position) => position.options).filter(({ takesValue }) => takesValue);
  return [...new Set(options.map(({ word }) => word))];
};

/** The pattern of these options after any command, in bash and zsh. */
const valuePattern = (positions: readonly Position[]): string =>
  valueOptions(positions)
    .map((word) => `*${quoted(` ${word}`)}`)
    .join(' | ');

const definition = (name: string): string =>
  `type ${name} >/dev/null 2>&1 || ${name}() { npm run --silent ${name} -- "$@"; }`;

/** Bash and zsh share the loop over the words before the cursor: it finds the command and counts its arguments. */
const loop = (positions: readonly Position[], words: string, range: string): string =>
  `  for ((${range}; index++)); do
    next=\${${words}[index]}
    case "$command_path $next" in
      ${commandPatterns(positions).join(' | ')}) command_path="$command_path $next" ;;
      ${valuePattern(positions)}) index=$((index + 1)) ;;
      *' --'*) ;;
      *) place=$((place + 1)) ;;
    esac
  done`;

/** The arms of the `case` that collects candidates. `values` are those of options, `places` those of arguments. */
function armsOf(positions: readonly Position[], wordOf: (word: Word) => string) {
  const arm = (pattern: string, words: readonly string[]): string[] =>
    words.length > 0 ? [`${quoted(pattern)}) candidates+=(${words.map(quoted).join(' ')}) ;;`] : [];
  const join = (arms: readonly string[]): string => arms.join('\n      ');
  const choicesOf = ({ path, options }: Position) =>
    options.flatMap(({ word, choices }) => arm(`${path} ${word}`, choices));
  const placesOf = ({ path, places }: Position) => places.flatMap((choices, place) => arm(`${path} ${place}`, choices));
  const wordsOf = ({ path, commands, options }: Position) => arm(path, [...commands, ...options].map(wordOf));
  return {
    values: join(positions.flatMap(choicesOf)),
    places: join(positions.flatMap(placesOf)),
    words: join(positions.flatMap(wordsOf)),
  };
}

/** Where the script offers nothing, bash completes file names. */
function bashScript(name: string, positions: readonly Position[]): string {
  const { values, places, words } = armsOf(positions, ({ word }) => word);
  return `${definition(name)}
_${name}() {
  local command_path=${name} place=0 index next candidates=()
${loop(positions, 'COMP_WORDS', 'index = 1; index < COMP_CWORD')}
  case "$command_path \${COMP_WORDS[COMP_CWORD - 1]}" in
      ${values}
      ${valuePattern(positions)}) ;;
      *)
    case "$command_path $place" in
      ${places}
    esac
    case "$command_path" in
      ${words}
    esac ;;
  esac
  COMPREPLY=($(compgen -W "\${candidates[*]}" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _${name} ${name}`;
}

function zshScript(name: string, positions: readonly Position[]): string {
  const { values, places, words } = armsOf(
    positions,
    ({ word, description }) => `${word}:${description.replaceAll(':', '\\:')}`,
  );
  const files = positions.flatMap(({ path, options }) =>
    options.filter(({ isFile }) => isFile).map(({ word }) => `${quoted(`${path} ${word}`)}) _files; return ;;`),
  );
  return `${definition(name)}
_${name}() {
  local command_path=${name} place=0 index next
  local -a candidates
${loop(positions, 'words', 'index = 2; index < CURRENT')}
  case "$command_path \${words[CURRENT - 1]}" in
      ${[...files, values].join('\n      ')}
      ${valuePattern(positions)}) return ;;
      *)
    case "$command_path $place" in
      ${places}
    esac
    case "$command_path" in
      ${words}
    esac ;;
  esac
  _describe ${name} candidates
}
compdef _${name} ${name}`;
}

function fishScript(name: string, positions: readonly Position[]): string {
  return `type -q ${name}; or function ${name}; npm run --silent ${name} -- $argv; end
function __${name}_reached
  set -l command_path ${name}
  set -l place 0
  set -l is_value no
  for next in (commandline -opc)[2..-1]
    if test $is_value = yes
      set is_value no
      continue
    end
    switch "$command_path $next"
      case ${commandPatterns(positions).join(' ')}
        set command_path "$command_path $next"
      case ${valueOptions(positions)
        .map((word) => quoted(`* ${word}`))
        .join(' ')}
        set is_value yes
      case '* --*'
      case '*'
        set place (math $place + 1)
    end
  end
  test "$command_path" = "$argv[1]"; or return 1
  test (count $argv) -eq 1; or test $place = $argv[2]
end
complete -c ${name} -f
${positions.flatMap((position) => fishLines(name, position)).join('\n')}`;
}

function fishLines(name: string, { path, commands, options, places }: Position): string[] {
  const complete = (condition: string, rest: string): string =>
    `complete -c ${name} -n ${quoted(`__${name}_reached ${condition}`)} ${rest}`;
  const valueSyntax = ({ takesValue, isFile, choices }: WordOption): string => {
    if (!takesValue) return '';
    if (isFile) return ' -r -F';
    return choices.length > 0 ? ` -x -a ${quoted(choices.join(' '))}` : ' -x';
  };
  return [
    ...commands.map(({ word, description }) => complete(`"${path}"`, `-a ${word} -d ${quoted(description)}`)),
    ...places.flatMap((choices, place) =>
      choices.length > 0 ? [complete(`"${path}" ${place}`, `-a ${quoted(choices.join(' '))}`)] : [],
    ),
    ...options.map((option) =>
      complete(`"${path}"`, `-l ${option.word.slice(2)}${valueSyntax(option)} -d ${quoted(option.description)}`),
    ),
  ];
}
