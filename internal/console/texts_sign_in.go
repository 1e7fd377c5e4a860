package console

func signInTexts() texts {
	return texts{
		"sign_in.title":    {"Iniciar sesión", "Sign in"},
		"sign_in.lead":     {"Facturación electrónica de la República Dominicana", "Electronic fiscal invoicing for the Dominican Republic"},
		"sign_in.email":    {"Correo electrónico", "Email"},
		"sign_in.password": {"Contraseña", "Password"},
		"sign_in.code":     {"Código del segundo factor", "Code of the second factor"},
		"sign_in.code_hint": {
			"Solo si lo activó: el código de 6 dígitos de su aplicación, o un código de recuperación.",
			"Only if you have set it up: the 6 digits of your app, or a recovery code."},
		"sign_in.submit": {"Entrar", "Sign in"},
		"sign_in.help": {
			"¿No tiene acceso o perdió su contraseña? Pida un enlace nuevo a quien opera el servicio.",
			"No access, or lost your password? Ask the person who runs the service for a new link."},
		"sign_in.denied": {
			"El correo, la contraseña o el código no es correcto.",
			"The email, the password or the code is not right."},
		"sign_in.limited": {
			"Demasiados intentos fallidos. Espere %d segundos e inténtelo de nuevo.",
			"Too many attempts have failed. Wait %d seconds and try again."},

		"welcome.title":  {"Elija su contraseña", "Choose your password"},
		"welcome.lead":   {"Hola, %s. Con esta contraseña y su correo %s entrará a la consola.", "Hello, %s. With this password and your email %s you sign in to the console."},
		"welcome.submit": {"Guardar y entrar", "Save and sign in"},

		"password.new":       {"Contraseña nueva", "New password"},
		"password.again":     {"Repita la contraseña", "The password again"},
		"password.hint":      {"Al menos %d caracteres. Una frase larga es fácil de recordar y difícil de adivinar.", "At least %d characters. A long sentence is easy to remember and hard to guess."},
		"password.short":     {"La contraseña debe tener al menos %d caracteres.", "The password must have at least %d characters."},
		"password.long":      {"La contraseña es demasiado larga.", "The password is too long."},
		"password.common":    {"Esta contraseña es una de las más comunes: elija otra.", "This password is one of the most common ones: choose another one."},
		"password.different": {"Las dos contraseñas no son iguales.", "The two passwords are not the same."},
	}
}
