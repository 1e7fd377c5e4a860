package console

func userTexts() texts {
	return texts{
		"users.title":       {"Personas", "People"},
		"users.lead":        {"Quién puede entrar a esta consola y qué puede hacer.", "Who may sign in to this console, and what each person may do."},
		"users.invite":      {"Invitar a una persona", "Invite a person"},
		"users.invite_lead": {"La persona recibe un enlace, válido 24 horas y una sola vez, donde elige su contraseña. Usted se lo envía.", "The person gets a link, valid for 24 hours and once, to choose a password. You send it."},
		"users.name":        {"Nombre", "Name"},
		"users.email":       {"Correo electrónico", "Email"},
		"users.role":        {"Rol", "Role"},
		"users.environment": {"Ambiente", "Environment"},
		"users.taxpayers":   {"Contribuyentes", "Taxpayers"},
		"users.state":       {"Estado", "State"},
		"users.last":        {"Última entrada", "Last sign-in"},
		"users.factor":      {"Segundo factor", "Second factor"},
		"users.create":      {"Crear y mostrar el enlace", "Create and show the link"},
		"users.all":         {"Todos", "All"},
		"users.none":        {"Ninguno", "None"},
		"users.never":       {"Nunca", "Never"},
		"users.active":      {"Activa", "Active"},
		"users.invited":     {"Invitada", "Invited"},
		"users.disabled":    {"Inactiva", "Disabled"},
		"users.you":         {"usted", "you"},
		"users.yes":         {"Activado", "On"},
		"users.no":          {"No", "Off"},
		"users.back":        {"Todas las personas", "All people"},

		"users.every_environment": {"Todos los ambientes", "Every environment"},
		"users.taxpayers_hint":    {"Para contables y desarrolladores. Operadores y auditores ven todos.", "For accountants and developers. Operators and auditors see all of them."},
		"users.role_operator":     {"Operador: todos los contribuyentes, todo", "Operator: all taxpayers, everything"},
		"users.role_auditor":      {"Auditor: ve todo, no cambia nada", "Auditor: sees everything, changes nothing"},
		"users.role_accountant":   {"Contable: comprobantes y exportaciones de sus contribuyentes", "Accountant: documents and exports of its taxpayers"},
		"users.role_developer":    {"Desarrollador: claves, webhooks y solicitudes de sus contribuyentes", "Developer: keys, webhooks and requests of its taxpayers"},

		"users.link":              {"Enlace de acceso", "Access link"},
		"users.link_title":        {"Copie este enlace ahora: no se vuelve a mostrar", "Copy this link now: it is not shown again"},
		"users.without_taxpayers": {"%s no ve ningún contribuyente: no puede ver ni emitir nada. Márquele al menos uno abajo, en el rol y los contribuyentes.", "%s sees no taxpayer, and so can see and issue nothing. Choose at least one below, with the role."},
		"users.link_text":         {"Envíelo a %s por un medio seguro. Es válido durante 24 horas y una sola vez.", "Send it to %s in a safe way. It is valid for 24 hours and once."},

		"users.change_role":      {"Rol y contribuyentes", "Role and taxpayers"},
		"users.change_role_lead": {"Al guardar, la persona sale de todas sus sesiones.", "When you save, all sessions of the person end."},
		"users.save":             {"Guardar", "Save"},
		"users.access":           {"Acceso", "Access"},
		"users.reset":            {"Crear un enlace nuevo", "Make a new link"},
		"users.reset_lead":       {"Borra la contraseña y el segundo factor, cierra las sesiones y activa a la persona de nuevo.", "Removes the password and the second factor, ends the sessions and enables the person again."},
		"users.reset_confirm":    {"¿Borrar la contraseña de esta persona y crear un enlace nuevo?", "Remove the password of this person and make a new link?"},
		"users.disable":          {"Desactivar", "Disable"},
		"users.disable_lead":     {"Cierra sus sesiones en menos de 5 segundos. Lo que hizo queda en la auditoría.", "Ends the sessions within 5 seconds. What the person did stays in the audit log."},
		"users.disable_confirm":  {"¿Desactivar a esta persona? Saldrá de todas sus sesiones.", "Disable this person? All of the person's sessions end."},
		"users.self":             {"Es usted. Cambie su contraseña, su idioma y su segundo factor en su cuenta; otro operador puede cambiar su rol.", "This is you. Change your password, language and second factor in your account; another operator can change your role."},

		"users.other_environment": {"Esta persona no es solo de su ambiente. La cambia un operador de todos los ambientes.", "This person is not of your environment alone. An operator of every environment can change the person."},

		"users.wrong_name":     {"Escriba un nombre de 1 a 100 caracteres.", "Enter a name of 1 to 100 characters."},
		"users.wrong_email":    {"Escriba un correo como ana@ejemplo.com.do.", "Enter an email like ana@example.com."},
		"users.email_taken":    {"Otra persona ya usa este correo.", "Another person has this email already."},
		"users.wrong_role":     {"Elija un rol.", "Choose a role."},
		"users.wrong_taxpayer": {"Uno de los contribuyentes no existe: cargue la página de nuevo.", "One of the taxpayers does not exist: load the page again."},

		"done.users.role":    {"Se guardó el rol. Las sesiones de la persona terminaron.", "The role is saved. The sessions of the person have ended."},
		"done.users.disable": {"La persona está inactiva y sus sesiones terminaron.", "The person is disabled, and all sessions have ended."},
	}
}
