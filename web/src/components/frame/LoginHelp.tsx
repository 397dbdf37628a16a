/** Instructions for getting a login link. */
export function LoginHelp() {
  return (
    <p>
      Run <code>wakeful login</code> on the machine that runs the server, and open the link it prints. The server also
      prints one each time it starts. A link works once, for ten minutes.
    </p>
  );
}
